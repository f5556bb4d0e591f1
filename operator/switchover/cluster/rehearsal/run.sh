# Runs what it is told, one command after the other, in a container of the brokers' image (docs/rehearsal.md).
# Arguments: a name, the shared directory, and where the image has Kafka's start script.
#
# commands/NAME.N is a command: lines with the heap, the class and its arguments. Its output goes to NAME.N.log, its exit
# code to NAME.N.exit. commands/NAME.N.stop ends it before its time, commands/end everything. Where the container has a memory
# limit (MEMORY_LIMIT, bytes), the heap is six tenths of it. Exit code 200: beside the start script is no kafka-run-class; the log
# names start scripts that the image has elsewhere.
name=$1 shared=$2 bin=${3%/*} child=
umask 022
for run_class in "$bin/kafka-run-class.sh" "$bin/kafka-run-class" missing; do [ ! -e "$run_class" ] || break; done
finish() { [ -z "$child" ] || kill -"$1" "$child" 2>/dev/null; }
trap 'finish TERM; exit 0' TERM INT

# Variables of the image's own for its own processes, such as JMX ports or agents, have no place here.
unset KAFKA_OPTS KAFKA_JMX_OPTS JMX_PORT KAFKA_JMX_PORT EXTRA_ARGS KAFKA_GC_LOG_OPTS CLASSPATH KAFKA_DEBUG
export LOG_DIR=$shared/$name-logs KAFKA_LOG4J_OPTS="-Dlog4j.configuration=file:$shared/commands/log4j.properties"
number=1
while [ ! -e "$shared/commands/end" ]; do
    command=$shared/commands/$name.$number
    if [ ! -e "$command" ]; then sleep 0.1; continue; fi
    { IFS= read -r heap; IFS= read -r main; mapfile -t arguments; } <"$command"
    if [ "$run_class" = missing ]; then
        starts
        printf '%s\n' "${starts[@]}" >"$shared/$name.$number.log"
        echo 200 >"$shared/$name.$number.exit"
    else
        KAFKA_HEAP_OPTS=$heap${MEMORY_LIMIT:+ -Xmx$((MEMORY_LIMIT / 10 * 6))} "$run_class" "$main" "${arguments[@]}" >>"$shared/$name.$number.log" 2>&1 &
        child=$! waited=0
        while kill -0 "$child" 2>/dev/null; do
            sleep 0.1
            [ -e "$command.stop" ] || [ -e "$shared/commands/end" ] || continue
            [ "$waited" != 0 ] || finish TERM
            waited=$((waited + 1))
            [ "$waited" != 100 ] || finish KILL
        done
        wait "$child"
        echo "$?" >"$shared/$name.$number.exit.new"
        mv "$shared/$name.$number.exit.new" "$shared/$name.$number.exit"
        child=
    fi
    number=$((number + 1))
done
exit 0
