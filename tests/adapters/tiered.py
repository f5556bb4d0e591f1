"""Tiered storage that keeps nothing, of classes of a user's own: Kafka's own that would is in its test jar alone."""

import subprocess
from pathlib import Path

from adapters.servers import libraries

SETTINGS = """remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=NoStorage
remote.log.metadata.manager.class.name=NoMetadata
"""
_IMPORTS = """import java.io.InputStream;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.*;
"""
_SEGMENT = "RemoteLogSegmentMetadata segment"
_STORAGE = f"""public class NoStorage implements RemoteStorageManager {{
    public void configure(Map<String, ?> settings) {{}}
    public void close() {{}}
    public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData({_SEGMENT}, LogSegmentData data) {{
        return Optional.empty();
    }}
    public InputStream fetchLogSegment({_SEGMENT}, int start) {{ return InputStream.nullInputStream(); }}
    public InputStream fetchLogSegment({_SEGMENT}, int start, int end) {{ return InputStream.nullInputStream(); }}
    public InputStream fetchIndex({_SEGMENT}, IndexType type) {{ return InputStream.nullInputStream(); }}
    public void deleteLogSegmentData({_SEGMENT}) {{}}
}}
"""
_METADATA = f"""public class NoMetadata implements RemoteLogMetadataManager {{
    private static final CompletableFuture<Void> DONE = CompletableFuture.completedFuture(null);
    private static final Iterator<RemoteLogSegmentMetadata> NONE = Collections.emptyIterator();
    public void configure(Map<String, ?> settings) {{}}
    public void close() {{}}
    public CompletableFuture<Void> addRemoteLogSegmentMetadata({_SEGMENT}) {{ return DONE; }}
    public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update) {{ return DONE; }}
    public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(TopicIdPartition of, int epoch, long offset) {{
        return Optional.empty();
    }}
    public Optional<Long> highestOffsetForEpoch(TopicIdPartition of, int epoch) {{ return Optional.empty(); }}
    public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata gone) {{ return DONE; }}
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition of) {{ return NONE; }}
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition of, int epoch) {{ return NONE; }}
    public void onPartitionLeadershipChanges(Set<TopicIdPartition> leads, Set<TopicIdPartition> follows) {{}}
    public void onStopPartitions(Set<TopicIdPartition> stopped) {{}}
    public long remoteLogSize(TopicIdPartition of, int epoch) {{ return 0; }}
}}
"""


def classes(directory: Path) -> Path:
    """A directory for Kafka's CLASSPATH that has them, compiled."""
    directory.mkdir()
    for name, source in (("NoStorage", _STORAGE), ("NoMetadata", _METADATA)):
        (directory / f"{name}.java").write_text(_IMPORTS + source)
    subprocess.run(["javac", "-cp", f"{libraries()}/*", *directory.glob("*.java")], check=True)
    return directory
