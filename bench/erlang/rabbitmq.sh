#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rabbitmq.sh BUILD [SECONDS] - a message broker at full load, traced: does it go on serving, is the capture whole, does `report`
#	make sense?
#
# Debian's RabbitMQ runs in a folder of its own (no service is started, no port of the machine's RabbitMQ used), with publishers and
# consumers of python3-pika. Their messages are counted without a trace, for SECONDS each with one of calls' arities
# and one of their arguments, and again without. Needs: apt-get install
# rabbitmq-server python3-pika. Not in CI.
set -u
build=$(realpath "$1")
seconds=${2:-60}
tw=$build/bin/tracewheel
for need in /usr/lib/rabbitmq/bin/rabbitmq-server "$build/erlang/ebin/tracewheel.beam"; do
	[ -e "$need" ] || { echo "rabbitmq.sh: $need is missing: apt-get install rabbitmq-server python3-pika erlang-dev" >&2 && exit 1; }
done
/usr/bin/python3 -c 'import pika' || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-rabbit.XXXXXX")
node=rabbit_tracewheel_$$@localhost
port=$((20000 + $$ % 20000))
export HOME=$work RABBITMQ_NODENAME=$node RABBITMQ_NODE_PORT=$port RABBITMQ_DIST_PORT=$((port + 20000)) RABBITMQ_LOG_BASE=$work
export RABBITMQ_MNESIA_BASE=$work/mnesia RABBITMQ_PID_FILE=$work/pid RABBITMQ_ENABLED_PLUGINS_FILE=$work/plugins TRACEWHEEL=$tw
export RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_CONFIG_FILE=$work/none
echo '[].' >"$work/plugins"
tr -dc a-z </dev/urandom | head -c 20 >"$work/.erlang.cookie"
chmod 400 "$work/.erlang.cookie"

# An epmd of this run: one that the broker starts would stay.
export ERL_EPMD_PORT=$((port + 1)) ERL_EPMD_ADDRESS=127.0.0.1
epmd &
epmd=$!
until epmd -names >/dev/null 2>&1 || ! kill -0 $epmd 2>/dev/null; do sleep 0.05; done
/usr/lib/rabbitmq/bin/rabbitmq-server >"$work/out" 2>&1 &
server=$!
stop() {
	ask 'init:stop()' >/dev/null 2>&1
	wait $server 2>/dev/null
	kill $epmd 2>/dev/null
	rm -rf "$work"
}
trap stop EXIT

# ask EXPRESSION: in the broker's VM, from another one.
ask() {
	erl -noshell -hidden -sname "ask_$$_$RANDOM@localhost" -setcookie "$(cat "$work/.erlang.cookie")" -eval "
		net_kernel:connect_node('$node') orelse halt(1),
		{ok, Tokens, _} = erl_scan:string(\"$1.\"), {ok, Expressions} = erl_parse:parse_exprs(Tokens),
		case rpc:call('$node', erl_eval, exprs, [Expressions, []], 60000) of
			{value, Value, _} -> io:format(\"~0tp~n\", [Value]), halt(0);
			Other -> io:format(\"~0tp~n\", [Other]), halt(1)
		end." </dev/null
}
for _ in {1..120}; do
	ask 'rabbit:is_running()' 2>/dev/null | grep -q true && break
	kill -0 $server 2>/dev/null || { tail -n 20 "$work/out" && exit 1; }
	sleep 0.5
done

cat >"$work/load.py" <<'PY'
import pika, sys, threading, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
QUEUES, begin, end = 4, time.time(), time.time() + seconds
sent, got, last = [0] * QUEUES, [0] * QUEUES, [0] * QUEUES

def connect():
    return pika.BlockingConnection(pika.ConnectionParameters("localhost", port))

def publish(n):
    connection = connect()
    channel = connection.channel()
    while time.time() < end:
        for _ in range(50):
            channel.basic_publish("", f"q{n}", b"x" * 100)
        sent[n] += 50
        while sent[n] - got[n] > 2000:
            connection.process_data_events(0)
            time.sleep(0.001)
    connection.close()

def consume(n):
    connection = connect()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=100)
    for method, _, body in channel.consume(f"q{n}", inactivity_timeout=1):
        if method:
            channel.basic_ack(method.delivery_tag)
            got[n] += 1
            last[n] = time.time()
        if time.time() > end + 2 and not method or time.time() > end + 20 or (time.time() > end and got[n] == sent[n]):
            break
    connection.close()

setup = connect()
for n in range(QUEUES):
    setup.channel().queue_declare(f"q{n}")
threads = [threading.Thread(target=f, args=(n,)) for n in range(QUEUES) for f in (publish, consume)]
[t.start() for t in threads]
[t.join() for t in threads]
setup.close()
print(f"{sum(sent)} sent, {sum(got)} received, {sum(got) / (max(last) - begin):.0f} a second until the last")
sys.exit(sum(sent) != sum(got))
PY
load() {
	printf '%-30s' "$1"
	/usr/bin/python3 "$work/load.py" "$port" "$2" || echo "  messages are missing"
}
# traced CAPTURE FLAG TEXT
traced() {
	echo "start: $(ask "element(1, tracewheel:start(\\\"$1\\\", #{patterns => [rabbit_channel, rabbit_amqqueue_process, \\\"rabbit_exchange -> return\\\"], flags => [call, send, 'receive', procs, running, garbage_collection$2], events => infinity, rate => infinity, time => infinity, force => true, owner => none}))")"
	load "traced $3, $seconds s" "$seconds"
	echo "stop:  $(ask 'tracewheel:stop()')"
}
capture=$PWD/rabbitmq.tw
load "without a trace, $((seconds / 4 + 1)) s" $((seconds / 4 + 1))
ask "code:add_patha(\\\"$build/erlang/ebin\\\")" >/dev/null
traced "$capture" ", arity" "with arity"
traced "$work/arguments.tw" "" "with arguments"
load "without a trace again" $((seconds / 4 + 1))
echo "memory of the VM: $(ask 'erlang:memory(total) div 1000000') MB; alarms: $(ask 'rabbit_alarm:get_alarms()')"
"$tw" info "$capture"
"$tw" report "$capture"
