"""What the rivals of OPC UA share: the items of the race and how their values are looked at, and measuring, one JSON object a line."""

import json
import os
import sys
import time

ITEMS = 100
CHANGES_S = 0.1
PATIENCE_S = 20.0
OPERATIONS = {"read 100": 100, "read 1": 1, "5,000 items/s": 100}
TYPICAL = "5,000 items/s"
ITEMS_PER_S = 5000
# Ticks of an OPC UA DateTime (100 ns since 1601) in a millisecond, and those before 1970.
MILLISECOND = 10_000
UNIX = 116_444_736_000_000_000

# Results go to standard output alone, whatever else libraries say there.
RESULTS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def now():
    """Now, in whole milliseconds."""
    ticks = UNIX + time.time_ns() // 100
    return ticks - ticks % MILLISECOND


def value(number, ticks):
    """The value that an item has of this time: a whole number that a float holds exactly."""
    return float((number + 1) * 100_000 + ticks // MILLISECOND % 100_000)


class Seen:
    """What a reader has seen: a value, its time and its quality have to belong together."""

    def __init__(self, items):
        self.times = [0] * items
        self.changes = 0

    def one(self, number, found, is_good, ticks):
        last = self.times[number]
        if not is_good or ticks < last or (ticks != last and found != value(number, ticks)):
            raise SystemExit(f"the value of item {number} is wrong: {found} at {ticks} after {last}, good: {is_good}")
        if ticks != last:
            self.changes += 1
            self.times[number] = ticks


class Plan:
    """What a client is told to do."""

    def __init__(self, arguments):
        self.calls, self.warmup, self.budget, self.only, self.pids = 10_000, 500, 0.0, None, []
        for name, given in zip(arguments[::2], arguments[1::2]):
            if name == "--calls":
                self.calls = max(1, int(given))
            elif name == "--warmup":
                self.warmup = int(given)
            elif name == "--budget-ms":
                self.budget = int(given) / 1000
            elif name == "--server-pid":
                self.pids.append(int(given))
            elif name == "--operation":
                self.only = given

    def server_cpu_us(self):
        """CPU time of the server: the clock of another process has a number of its own (clock_getcpuclockid)."""
        try:
            return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in self.pids) / 1000 if self.pids else None
        except OSError:
            return None


def operations(plan, race):
    """Those of the race that are wanted, with the items of a read."""
    wanted = [TYPICAL] if race == "rates" else ["read 100", "read 1"]
    return [(name, OPERATIONS[name]) for name in wanted if plan.only in (None, name)]


class Clock:
    """The time of calls, told one after the other; between two of them the clock is read once."""

    def __init__(self, plan, operation):
        self.plan, self.operation, self.samples, self.warm = plan, operation, [], 0
        self.begun = self.last = time.perf_counter_ns()
        self.is_warm = plan.warmup == 0
        # At a rate of its own.
        self.pause_ns = 100 * 1_000_000_000 // ITEMS_PER_S if operation == TYPICAL else 0
        self.next = 0
        if self.is_warm:
            self.start()

    def start(self):
        self.is_warm = True
        self.cpu = (time.process_time_ns(), self.plan.server_cpu_us())
        self.begun = self.last = self.next = time.perf_counter_ns()

    def goes_on(self):
        """Called after each call: whether there is to be one more."""
        now = time.perf_counter_ns()
        budget_ns = self.plan.budget * 1e9
        if not self.is_warm:
            self.warm += 1
            if self.warm >= self.plan.warmup or (budget_ns and now - self.begun > budget_ns / 5):
                self.start()
            return True
        self.samples.append((now - self.last) * 1000)
        self.last = now
        return len(self.samples) < self.plan.calls and not (budget_ns and now - self.begun > budget_ns)

    def pause(self):
        """How many seconds to sleep before the next call, at a rate."""
        if not self.pause_ns or not self.is_warm:
            return 0.0
        now = time.perf_counter_ns()
        self.next = max(self.next + self.pause_ns, now)
        return (self.next - now) / 1e9

    def slept(self):
        """What was slept is no part of a call."""
        if self.pause_ns:
            self.last = time.perf_counter_ns()

    def say(self):
        own, server = time.process_time_ns(), self.plan.server_cpu_us()
        end = time.perf_counter_ns() if self.pause_ns else self.last
        count = len(self.samples)
        size = max(1, -(-count // 20))
        blocks = [sorted(self.samples[at : at + size]) for at in range(0, count, size)]
        histogram = {}
        for sample in self.samples:
            histogram[sample] = histogram.get(sample, 0) + 1
        line = {
            "operation": self.operation,
            "calls": count,
            "total_ns": end - self.begun,
            "client_cpu_us": (own - self.cpu[0]) / 1000,
            "server_cpu_us": server - self.cpu[1] if server is not None and self.cpu[1] is not None else None,
            "blocks_ps": [block[len(block) // 2] for block in blocks],
            "histogram_ps": sorted(histogram.items()),
        }
        print(json.dumps(line), file=RESULTS, flush=True)


def publish(ref_file, address):
    """Writes the file in one step: whoever sees it sees all of it."""
    with open(ref_file + ".partial", "w", encoding="utf-8") as file:
        file.write(f"opc\t{address}\n")
    os.rename(ref_file + ".partial", ref_file)


def reference(ref_file):
    with open(ref_file, encoding="utf-8") as file:
        return file.read().rstrip("\n").split("\t")[1]


def free_port(host):
    """A port that nobody has now: the servers cannot tell which one the system gave them."""
    import socket

    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def run(serve, read):
    """`serve REF-FILE HOST` or `REF-FILE race opc|rates PLAN`."""
    arguments = sys.argv[1:]
    if arguments[0] == "serve":
        return serve(arguments[1], arguments[2])
    ref_file, _, race, *plan = arguments
    return read(reference(ref_file), race, Plan(plan))
