"""The format, the recorder and the reader: what is on disk, and what SIGKILL leaves of it."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from history.__main__ import partitions, report
from history.events import SPAN, Kind, Partition, parsed, written
from history.ranges import Ranges
from history.reader import Reading
from history.recorder import Recorder, opened
from unit.group_story import TOPIC, Story, endings

APPS = Path(__file__).parents[2] / "sandbox/apps"


def stored(story: Story, directory: Path) -> list[Path]:
    """Each history of a story in a file of its own."""
    paths = []
    for number, file in enumerate(story.files):
        paths.append(directory / f"{number}.jsonl")
        paths[-1].write_bytes(file.getvalue())
    return paths


def lawful() -> Story:
    story = Story()
    story.produce(0, *range(10))
    a = story.member("a", instance="a-0")
    a.claim(0)
    a.deliver(0, *range(10))
    a.commit(0, 10)
    a.release(0)
    a.recorder.stop()
    return story


def test_every_kind_of_event_survives_its_line() -> None:
    story = lawful()
    recorder = story.member("b").recorder
    recorder.lost(TOPIC, 1)
    recorder.error("_TRANSPORT")
    recorder.fenced("told to go")
    recorder.reset(TOPIC, 1, 5)
    recorder.held(TOPIC, 1, Ranges([(0, 3), (5, 5)]))
    events = story.events()
    assert {event.kind for event in events} == set(Kind)
    assert [parsed(written(event)) for event in events] == events
    claim = next(event for event in events if event.kind is Kind.CLAIM)
    assert (claim.partition, claim.offset, claim.instance) == (Partition(TOPIC, 0), -1, "a-0")


@pytest.mark.parametrize("line", [
    b"", b"{", b"[]", b"1", b'"start"', b'{"event":"start"}', b'{"event":"dance","mono":1,"wall":1,"member":"a","run":"1"}',
    b'{"event":"delivered","mono":1,"wall":1,"member":"a","run":"1","topic":"t","partition":0,"since":1,"until":1}',
    b'{"event":"commit","mono":1,"wall":1,"member":"a","run":"1","topic":"t","partition":0,"since":1}', b"\xff{}",
])
def test_what_is_no_whole_event_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="not an event"):
        parsed(line)


def test_deliveries_are_written_as_ranges_in_windows_and_the_first_at_once() -> None:
    story = Story()
    a = story.member("a")
    a.claim(0)
    for offset in range(3000):
        a.deliver(0, offset)  # a millisecond each
    a.recorder.flush()
    windows = [event for event in story.events() if event.kind is Kind.DELIVERED]
    assert windows[0].ranges == ((0, 0),)
    assert len(windows) <= 2 + 3.0 / SPAN
    assert all(window.until - window.since <= SPAN and window.mono - window.since <= SPAN + 0.01 for window in windows)
    assert [r for window in windows for r in window.ranges][-1][1] == 2999


def test_a_window_that_nothing_follows_is_written_by_a_tick_and_not_before_its_time() -> None:
    story = Story()
    a = story.member("a")
    for wait, expected in ((0.0, 0), (SPAN / 2, 0), (SPAN, 1)):
        if not wait:
            a.deliver(0, 7)
        story.wait(wait)
        a.recorder.tick()
        assert sum(event.kind is Kind.DELIVERED for event in story.events()) == expected


def test_what_was_delivered_before_a_new_claim_belongs_to_the_holding_before_it() -> None:
    story = Story()
    a = story.member("a")
    for _ in range(2):
        a.claim(0)
        a.deliver(0, 0, 1)
    assert [event.kind for event in story.events()][2:5] == ["claim", "delivered", "delivered"]


@pytest.mark.parametrize("closing", ["commit", "release", "lost", "stop", "fenced"])
def test_no_commit_and_no_end_goes_before_the_deliveries_it_follows(closing: str) -> None:
    story = Story()
    a = story.member("a")
    a.claim(0)
    a.deliver(0, 0, 1, 2)
    {"commit": lambda: a.commit(0, 3), **endings(a)}[closing]()
    kinds = [event.kind for event in story.events() if event.by.member == "a"]
    assert kinds == ["start", "claim", "delivered", "delivered", closing]


def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = stored(lawful(), tmp_path)
    paths[1].write_bytes(paths[1].read_bytes()[:-9])
    reading = Reading(paths)
    kinds = [event.kind for event in reading.events()]
    assert (kinds.count(Kind.RELEASE), kinds.count(Kind.STOP)) == (1, 0)
    assert reading.torn == ["1.jsonl line 7"]
    assert report(paths, []) == 0
    assert "note: left out, torn: 1.jsonl line 7" in capsys.readouterr().out


def test_a_run_after_a_torn_line_begins_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for _ in range(2):
        out = opened(str(path))
        Recorder(out, "a")
        out.close()
        with path.open("ab") as torn:
            torn.write(b'{"event":"com')
    Recorder(opened(str(path)), "a")
    reading = Reading([path])
    assert [event.kind for event in reading.events()] == [Kind.START] * 3
    assert reading.torn == ["a.jsonl line 2", "a.jsonl line 4"]


def test_lines_of_others_are_left_out_and_counted(tmp_path: Path) -> None:
    [_, path] = stored(lawful(), tmp_path)
    path.write_bytes(b"%5|1700000000.1|REQTMOUT| a client's own log\n\n" + path.read_bytes())
    reading = Reading([path])
    assert len(list(reading.events())) == 7
    assert reading.notes() == ["left out: 1 lines that are no history"]


def test_files_are_laid_together_by_time(tmp_path: Path) -> None:
    story = lawful()
    events = list(Reading(stored(story, tmp_path)).events())
    assert events == story.events()
    assert [event.mono for event in events] == sorted(event.mono for event in events)


def test_two_histories_in_one_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = stored(lawful(), tmp_path)
    second.write_bytes(second.read_bytes() + first.read_bytes())
    assert report([second], []) == 2
    assert "1.jsonl line 8: not in the order of time" in capsys.readouterr().err


def test_sigkill_takes_no_line_that_was_written(tmp_path: Path) -> None:
    script = ("import os, signal, sys; from history.recorder import Recorder, opened\n"
              "r = Recorder(opened(sys.argv[1]), 'a'); r.claim('orders', 0, 0.0, -1)\n"
              "r.delivered('orders', 0, 0); r.commit('orders', 0, r.flush(), 1)\n"
              "r.delivered('orders', 0, 1)\n"
              "os.kill(os.getpid(), signal.SIGKILL)")
    path = tmp_path / "a.jsonl"
    command = [sys.executable, "-c", script, str(path)]
    killed = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(APPS)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [event.kind for event in Reading([path]).events()] == ["start", "claim", "delivered", "commit"]


def test_standard_output_is_written_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    Recorder(opened("-"), "a").error("told")
    assert [parsed(line.encode()).kind for line in capfd.readouterr().out.splitlines()] == ["start", "error"]


def test_a_history_that_nobody_wants_goes_nowhere() -> None:
    Recorder(opened(os.devnull), "a").stop()


@pytest.mark.parametrize("fault", ["overlap", "rewind", "loss"])
def test_the_report_ends_with_one_on_each_fault(fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    story.produce(0, *range(10))
    a, b = story.member("a"), story.member("b")
    a.claim(0)
    a.deliver(0, *range(9))
    match fault:
        case "overlap":
            b.deliver(0, 0)
            a.deliver(0, 9)
            b.recorder.flush()
            a.commit(0, 10)
        case "rewind":
            a.commit(0, 9)
            a.commit(0, 1)
        case "loss":
            a.commit(0, 10)
    assert report(stored(story, tmp_path), []) == 1
    faults = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert [word for word in faults if word in ("overlap", "rewind", "loss")] == [fault]


def test_the_command_reports_files(tmp_path: Path) -> None:
    paths = stored(lawful(), tmp_path)
    command = [sys.executable, "-m", "history", "report", *map(str, paths), "--expect", "orders=2"]
    told = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(APPS)}, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == "never owned: orders-1"
    assert told.stdout.splitlines()[-1].startswith("2 processes, 2 partitions, 10 deliveries: 0 overlaps, 0 rewinds, 0 lost")


def test_a_missing_file_is_not_judged(tmp_path: Path) -> None:
    assert report([tmp_path / "none"], []) == 2


def test_partitions_of_the_command_line() -> None:
    assert partitions("or=ders=2") == [Partition("or=ders", 0), Partition("or=ders", 1)]
    for wrong in ("orders", "=3", "orders=x"):
        with pytest.raises(Exception, match="not TOPIC=PARTITIONS"):
            partitions(wrong)


def test_a_write_that_the_kernel_takes_in_parts_is_finished() -> None:
    class Pipe(io.BytesIO):
        def write(self, data, /) -> int:
            return super().write(bytes(data[:7]))

    out = Pipe()
    Recorder(out, "a", clock="boot").error("told")
    assert [parsed(line).kind for line in out.getvalue().splitlines()] == ["start", "error"]
