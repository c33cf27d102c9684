// Measuring calls, and telling the coordinator about them: one JSON object a line, as measure.h does for the rivals in C++.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

class Plan
{
    public long Calls = 10000, Warmup = 500, BudgetMs = 0, LargeDivisor = 1, PauseMs = 0;
    public string Only = "";
    public readonly List<int> ServerPids = new List<int>();

    // Takes one option and its value; false if it is none of these.
    public bool Take(string name, string value)
    {
        switch (name)
        {
            case "--calls": Calls = Math.Max(1, long.Parse(value)); return true;
            case "--warmup": Warmup = long.Parse(value); return true;
            case "--budget-ms": BudgetMs = long.Parse(value); return true;
            case "--large-divisor": LargeDivisor = Math.Max(1, long.Parse(value)); return true;
            case "--pause-ms": PauseMs = long.Parse(value); return true;
            case "--server-pid": ServerPids.Add(int.Parse(value)); return true;
            case "--operation": Only = value; return true;
            default: return false;
        }
    }
}

static class Measure
{
    struct Timespec { public IntPtr Seconds, Nanoseconds; }
    [DllImport("libc")] static extern int clock_gettime(int clock, out Timespec time);
    [DllImport("libc")] static extern int clock_getcpuclockid(int pid, out int clock);

    const int Realtime = 0, Monotonic = 1, ProcessCpu = 2;

    static long Now(int clock)
    {
        Timespec t;
        clock_gettime(clock, out t);
        return (long)t.Seconds * 1000000000 + (long)t.Nanoseconds;
    }

    // Microseconds of CPU, all threads of these processes; null if they cannot be told.
    static double? CpuOf(List<int> pids)
    {
        double sum = 0;
        foreach (int pid in pids)
        {
            int clock;
            Timespec t;
            if (clock_getcpuclockid(pid, out clock) != 0 || clock_gettime(clock, out t) != 0) return null;
            sum += (long)t.Seconds * 1e6 + (long)t.Nanoseconds / 1e3;
        }
        return pids.Count == 0 ? (double?)null : sum;
    }

    // Between two calls the clock is read once.
    public static void Run(Plan plan, string operation, long calls, Action call)
    {
        if (plan.Only != "" && plan.Only != operation) return;
        long budget = plan.BudgetMs * 1000000, begun = Now(Monotonic);
        for (long i = 0; i < Math.Min(plan.Warmup, calls); i++)
        {
            call();
            if (budget != 0 && Now(Monotonic) - begun > budget / 5) break;
        }
        var samples = new List<long>((int)Math.Min(calls, 1 << 24));   // nanoseconds of one
        var began = new List<long>();
        var ended = new List<long>();
        double own = Now(ProcessCpu) / 1e3;
        double? server = CpuOf(plan.ServerPids);
        long start = Now(Monotonic), last = start;
        for (long i = 0; i < calls; i++)
        {
            if (plan.PauseMs != 0)
            {
                Thread.Sleep((int)plan.PauseMs);
                began.Add(Now(Realtime));
                last = Now(Monotonic);
            }
            call();
            long now = Now(Monotonic);
            if (plan.PauseMs != 0) ended.Add(Now(Realtime));
            samples.Add(now - last);
            last = now;
            if (budget != 0 && now - start > budget) break;
        }
        double ownAfter = Now(ProcessCpu) / 1e3;
        double? serverAfter = CpuOf(plan.ServerPids);

        // Medians of consecutive blocks, in picoseconds: they tell a drift from a difference.
        int count = samples.Count, blocks = Math.Min(20, count);
        var medians = Enumerable.Range(0, blocks).Select(b =>
        {
            var part = samples.GetRange(count * b / blocks, count * (b + 1) / blocks - count * b / blocks);
            part.Sort();
            return part[part.Count / 2] * 1000;
        });
        samples.Sort();
        var histogram = new List<string>();
        for (int i = 0; i < count;)
        {
            int same = i;
            while (same < count && samples[same] == samples[i]) same++;
            histogram.Add("[" + samples[i] * 1000 + "," + (same - i) + "]");
            i = same;
        }
        var line = new StringBuilder();
        line.AppendFormat(CultureInfo.InvariantCulture, "{{\"operation\":\"{0}\",\"calls\":{1},\"total_ns\":{2},\"client_cpu_us\":{3:0.000},\"server_cpu_us\":",
                          operation, count, last - start, ownAfter - own);
        if (server == null || serverAfter == null) line.Append("null");
        else line.AppendFormat(CultureInfo.InvariantCulture, "{0:0.000}", serverAfter - server);
        line.Append(",\"blocks_ps\":[").Append(string.Join(",", medians));
        line.Append("],\"histogram_ps\":[").Append(string.Join(",", histogram));
        line.Append("],\"began_ns\":[").Append(string.Join(",", began));
        line.Append("],\"ended_ns\":[").Append(string.Join(",", ended)).Append("]}");
        Console.WriteLine(line);
        Console.Out.Flush();
    }
}
