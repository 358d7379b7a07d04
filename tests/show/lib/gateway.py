"""The gateway: overload, replicas that come and go, what it costs beside a bare HAProxy, keys."""

import evidence
from adoption import show_tests

MISSING = "not run here"
TARGETS = ["gateway_test", "gateway_property", "gateway_bench"]
SLO_S = 2
P50_MORE_MS = 0.05
P99_RATIO = 1.10


def show_overload(show):
    found = evidence.bench_json("gateway_bench", "overload", 60)
    what = "10x overload for 60 s on two replicas: "
    if found is None:
        show.line(what + "goodput", MISSING, "at least 0.95 of the peak", False)
        return
    part = found["goodput_per_s"] / found["peak_per_s"]
    show.line(what + "goodput", "%.1f of %.1f a second = %.3f, asked %.0f"
              % (found["goodput_per_s"], found["peak_per_s"], part, found["asked_per_s"]),
              "at least 0.95 of the peak", part >= 0.95)
    show.line(what + "p99 to the first byte of who was let in",
              "%.2f s (p50 %.2f s)" % (found["admitted_p99_s"], found["admitted_p50_s"]),
              "within the SLO of %d s" % SLO_S, found["admitted_p99_s"] <= SLO_S)
    show.line(what + "refused while a lower class waited",
              "%d; refused high %d, normal %d, low %d; otherwise failed %d"
              % (found["refused_while_lower_waited"], found["refused_high"],
                 found["refused_normal"], found["refused_low"], found["lost"]),
              "never", found["refused_while_lower_waited"] == 0 and found["refused_high"] == 0 and
              found["lost"] == 0)
    show.line(what + "waiting at most, memory of the proxy",
              "%d; %.0f MiB, %.0f before" % (found["most_waiting"], found["proxy_mib_most"],
                                             found["proxy_mib_before"]),
              "600 places; less than 100 MiB more",
              found["most_waiting"] <= 600 and
              found["proxy_mib_most"] - found["proxy_mib_before"] < 100)
    show.line(what + "Retry-After against the wait of who was let in then",
              "%.1f %% of %d within 2x" % (100 * found["retry_within_2x"], found["retry_judged"]),
              "within 2x, 95 % of them",
              found["retry_judged"] > 0 and found["retry_within_2x"] >= 0.95)


def show_churn(show):
    found = evidence.bench_json("gateway_bench", "churn", 60)
    what = "replicas come and go under streams"
    if found is None:
        show.line(what, MISSING, "none lost", False)
        return
    show.line(what, "%d added, %d removed, %d of them killed, %d reloads, daemon killed %d times"
              % (found["added"], found["removed"], found["killed"], found["reloads"],
                 found["restarts"]),
              "1,000 each or more, a kill a second, 3 reloads, 2 kills",
              found["added"] + found["removed"] >= 1000 and found["killed"] >= 55 and
              found["reloads"] == 3 and found["restarts"] == 2)
    show.line("of their requests, lost before their answer had begun",
              "%d of %d" % (found["lost"], found["requests"]), "0", found["lost"] == 0)
    show.line("streams that broke, and answers that killed replicas had begun",
              "%d; %d" % (found["broken"], found["broken_by_kills"]), "equal",
              found["broken"] == found["broken_by_kills"])


def show_overhead(show):
    found = evidence.bench_json("gateway_bench", "overhead", 3)
    what = "beside a bare HAProxy at 2,000 requests/s, median of five"
    if found is None:
        show.line(what, MISSING, "p50 within +0.05 ms", False)
        return
    how = "" if found["fifo"] else " (without real-time priority)"
    show.line(what + ": p50", "%.3f against %.3f ms: %+.3f ms; bare against bare %.3f%s"
              % (found["gateway_p50_ms"], found["bare_p50_ms"], found["p50_more_ms"],
                 found["floor_p50_ms"], how),
              "within +0.05 ms", found["p50_more_ms"] <= P50_MORE_MS)
    allowed = max(P99_RATIO, found["floor_p99_ratio"])
    show.line(what + ": p99", "%.3f against %.3f ms: x%.3f; bare against bare up to x%.3f"
              % (found["gateway_p99_ms"], found["bare_p99_ms"], found["p99_ratio"],
                 found["floor_p99_ratio"]),
              "within 10 % or the floor", found["p99_ratio"] <= allowed)


def show_gateway(show):
    show_overload(show)
    show_churn(show)
    show_overhead(show)
    show_tests(show, "classes, refusals, hold, keys, models, TLS with a real proxy", "gateway_test",
               "AdmissionTest.*", "all pass")
    show_tests(show, "drawn replicas: places follow what they can do; two planted faults are "
               "noticed", "gateway_property", "ConcurrencyProperty.*", "all pass")


PARTS = [show_gateway]
