// With real processes: a supervisor for each task, and a daemon's side that comes and goes.
#include "backend/local/supervisors.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/clock.h"
#include "backend/local/durable_file.h"
#include "backend/local/launcher.h"
#include "backend/local/testing/bench_of_tasks.h"

namespace neap::local {
namespace {

using testing::has;
using testing::TaskBench;

TEST(Supervisors, ExitCodeSignalAndOutputAreKept) {
  TaskBench bench;
  bench.start(bench.shell(1, "echo out; echo err >&2; exit 7"));
  bench.start(bench.shell(2, "kill -TERM $$"));
  const Exited first = bench.wait_for<Exited>(1);
  const Exited second = bench.wait_for<Exited>(2);
  EXPECT_EQ(first.code, 7);
  EXPECT_EQ(first.signal, 0);
  EXPECT_EQ(second.signal, SIGTERM);
  EXPECT_GT(bench.wait_for<Started>(1).pid, 1);
  EXPECT_EQ(bench.log(1), "out\nerr\n");
}

TEST(Supervisors, SequencesAreGaplessFromOne) {
  TaskBench bench;
  bench.start(
      bench.python(1,
                   "say('hello',version=1,capabilities=['on_demand'])\n"
                   "for n in range(5): say('checkpoint',step=n,path='/c',bytes=1,seconds=0)\n"));
  bench.wait_for<Exited>(1);
  const std::vector<Report> reports = bench.reports(1);
  ASSERT_EQ(reports.size(), 8U);  // started, hello, five checkpoints, exited
  for (std::size_t i = 0; i < reports.size(); ++i) EXPECT_EQ(reports[i].sequence, i + 1);
}

TEST(Supervisors, WhatCannotBeStartedSaysWhy) {
  TaskBench bench;
  auto no_program = bench.shell(1, "");
  no_program.argv = {"/no/such/program"};
  auto no_directory = bench.shell(2, "true");
  no_directory.working_directory = "/no/such/directory";
  bench.start(no_program);
  bench.start(no_directory);
  EXPECT_EQ(bench.wait_for<StartFailed>(1).reason,
            "start /no/such/program: No such file or directory");
  EXPECT_EQ(bench.wait_for<StartFailed>(2).reason,
            "working directory /no/such/directory: No such file or directory");
  EXPECT_FALSE(has<Started>(bench.reports(1)));
}

TEST(Supervisors, StartingTwiceStartsOnce) {
  TaskBench bench;
  const auto task = bench.shell(1, "echo run; sleep 100");
  bench.start(task);
  bench.wait_for<Started>(1);
  bench.start(task);
  bench.restart_client();
  bench.start(task);  // a daemon that came back sends it again
  bench.wait_until([&] { return bench.log(1) == "run\n"; });
  bench.send(1, Kill{});
  EXPECT_EQ(bench.wait_for<Exited>(1).signal, SIGKILL);
  EXPECT_EQ(bench.log(1), "run\n");
}

TEST(Supervisors, ClientThatComesBackIsToldEverythingUnacknowledged) {  // G3
  TaskBench bench;
  bench.start(bench.shell(1, "sleep 0.3; exit 3"));
  bench.wait_for<Started>(1);
  bench.stop_client();
  bench.wait_until([&] { return ::access(exit_path(bench.directory(1)).c_str(), F_OK) == 0; });
  bench.start_client();
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 3);
  EXPECT_TRUE(has<Started>(bench.reports(1)));  // was never acknowledged
}

TEST(Supervisors, AcknowledgedReportsAreNotToldAgainAndTheSupervisorLeaves) {
  TaskBench bench;
  bench.start(bench.shell(1, "exit 0"));
  bench.wait_for<Exited>(1);
  bench.acknowledge_all(1);
  bench.wait_until([&] { return !supervisor_of(bench.directory(1)); });
}

TEST(Supervisors, ForgottenAfterItsEndWasAcknowledged) {
  TaskBench bench;
  bench.start(bench.shell(1, "exit 0"));
  bench.wait_for<Exited>(1);
  bench.forget(1);
  bench.acknowledge_all(1);
  bench.wait_until([&] { return ::access(bench.directory(1).c_str(), F_OK) != 0; });
}

TEST(Supervisors, KilledDaemonLosesNoReportAndNoExitStatus) {  // G3
  TaskBench bench;
  bench.stop_client();
  // The daemon of this test is a process of its own, so that it can be killed at any moment.
  const pid_t daemon = bench.fork_daemon(
      bench.python(1,
                   "for n in range(60):\n"
                   "  say('checkpoint',step=n,path='/c',bytes=1,seconds=0); time.sleep(0.01)\n"
                   "sys.exit(9)\n"));
  bench.wait_until([&] { return was_started(bench.directory(1)); });
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  bench.start_client();
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 9);
  std::int64_t next = 0;
  for (const Report& report : bench.reports(1)) {
    if (const auto* checkpoint = std::get_if<Checkpoint>(&report.body)) {
      EXPECT_EQ(checkpoint->step, next++);
    }
  }
  EXPECT_EQ(next, 60);
}

TEST(Supervisors, DaemonMayDieBetweenSpecAndStart) {
  TaskBench bench;
  bench.stop_client();
  const auto task = bench.shell(1, "exit 4");
  ASSERT_TRUE(make_directory(bench.directory(1), 0711));
  ASSERT_TRUE(write_durably(spec_path(bench.directory(1)), spec_text(task), 0600));
  bench.start_client();
  ASSERT_EQ(bench.found().size(), 1U);
  EXPECT_EQ(bench.found().front().state, FoundState::never_started);
  bench.start(task);
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 4);
}

// G5: nothing that a supervisor could not read back is written, and nobody restarts over it.
TEST(Supervisors, SpecThatCannotBeReadBackIsRefusedBeforeItIsWritten) {
  TaskBench bench;
  auto task = bench.shell(1, "true");
  task.environment.push_back(std::string("NEAP_RESTORE_FROM=/a") + '\0' + "b");
  bench.start(task);
  EXPECT_EQ(bench.wait_for<StartFailed>(1).reason, "environment: must not hold a zero byte");
  auto large = bench.shell(2, "true");
  for (int i = 0; i < 20; ++i) large.environment.push_back("A=" + std::string(100'000, 'x'));
  bench.start(large);
  EXPECT_NE(bench.wait_for<StartFailed>(2).reason.find("over the limit"), std::string::npos);
  EXPECT_NE(::access(bench.directory(1).c_str(), F_OK), 0);
}

// G3: one damaged file keeps nobody from being found again.
TEST(Supervisors, DamagedSpecDoesNotKeepTheOthersFromBeingAdopted) {
  TaskBench bench;
  bench.start(bench.shell(1, "sleep 1000"));
  bench.start(bench.shell(2, "sleep 1000"));
  bench.wait_for<Started>(1);
  bench.wait_for<Started>(2);
  ASSERT_TRUE(make_directory(bench.directory(3), 0711));
  for (const std::uint64_t damaged : {1, 3}) {
    ASSERT_TRUE(write_durably(spec_path(bench.directory(damaged)), "{\"argv\":[\"a", 0600));
  }
  bench.restart_client();
  ASSERT_EQ(bench.found().size(), 3U);
  EXPECT_EQ(bench.found()[0].state, FoundState::supervised);
  EXPECT_FALSE(bench.found()[0].task);
  EXPECT_NE(bench.found()[0].trouble.find("spec.json"), std::string::npos);
  EXPECT_EQ(bench.found()[1].state, FoundState::supervised);
  EXPECT_EQ(bench.found()[2].state, FoundState::never_started);
  for (const std::uint64_t alive : {1, 2}) {
    bench.send(alive, Kill{});
    EXPECT_EQ(bench.wait_for<Exited>(alive).signal, SIGKILL);
  }
}

TEST(Supervisors, DeadSupervisorMeansTaskGoneThenLost) {
  for (const bool with_group : {true, false}) {
    TaskBench bench;
    auto task = bench.shell(1, "sleep 1000 & setsid sleep 1001 & echo up; wait");
    if (with_group) bench.give_group(task);
    bench.start(task);
    bench.wait_for<Started>(1);
    bench.wait_until([&] { return bench.log(1) == "up\n"; });
    const auto marks = read_leftover(bench.directory(1), task).marks;
    bench.wait_until([&] { return remains_of(marks).size() == 3; });
    bool left_when_told = true;
    // Before the kill: what is left may be gone, and that told, in the next moment.
    bench.on_report([&](const Report& report) {
      if (report.terminal()) left_when_told = !remains_of(marks).empty();
    });
    ::kill(*supervisor_of(bench.directory(1)), SIGKILL);
    EXPECT_EQ(bench.wait_for<Lost>(1).reason, "supervisor died");
    EXPECT_FALSE(left_when_told);  // capacity is free only when nothing is left
    EXPECT_FALSE(has<Exited>(bench.reports(1)));
    const std::vector<Report> reports = bench.reports(1);
    EXPECT_EQ(reports.back().sequence, reports.size());
  }
}

TEST(Supervisors, SupervisorAndDaemonDeadTogetherIsNoticedAfterwards) {
  TaskBench bench;
  bench.start(bench.shell(1, "sleep 1000"));
  const pid_t pid = bench.wait_for<Started>(1).pid;
  bench.stop_client();
  ::kill(*supervisor_of(bench.directory(1)), SIGKILL);
  // The kernel ends the main process with its supervisor, daemon or not.
  bench.wait_until([&] { return !read_process(pid) || read_process(pid)->state == 'Z'; });
  bench.start_client();
  ASSERT_EQ(bench.found().size(), 1U);
  EXPECT_EQ(bench.found().front().state, FoundState::unsupervised);
  bench.wait_for<Lost>(1);
}

TEST(Supervisors, KillReachesDaemonisedGrandchildren) {
  for (const bool with_group : {true, false}) {
    TaskBench bench;
    auto task = bench.python(1,
                             "if os.fork()==0:\n"
                             "  os.setsid()\n"
                             "  if os.fork()!=0: os._exit(0)\n"
                             "  os.environ.clear(); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                             "  print(os.getpid(), flush=True); time.sleep(1000)\n"
                             "time.sleep(1000)\n");
    if (with_group) bench.give_group(task);
    bench.start(task);
    bench.wait_until([&] { return bench.log(1).ends_with('\n'); });
    const auto grandchild = static_cast<pid_t>(std::stol(bench.log(1)));
    ASSERT_EQ(::kill(grandchild, 0), 0);
    bench.send(1, Kill{});
    EXPECT_EQ(bench.wait_for<Exited>(1).signal, SIGKILL);
    EXPECT_FALSE(read_process(grandchild).has_value());
  }
}

TEST(Supervisors, WhatTheMainProcessLeavesBehindEndsWithIt) {
  TaskBench bench;
  bench.start(bench.shell(1, "setsid sleep 1000 & echo $!; exit 0"));
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 0);
  EXPECT_FALSE(read_process(static_cast<pid_t>(std::stol(bench.log(1)))).has_value());
}

TEST(Supervisors, TerminateIsAnsweredOrEndsInKill) {
  TaskBench bench;
  bench.start(bench.shell(1, "trap 'exit 75' TERM; echo up; while :; do sleep 0.02; done"));
  bench.start(bench.shell(2, "trap '' TERM; echo up; while :; do sleep 0.02; done"));
  for (const std::uint64_t id : {1, 2}) {
    bench.wait_until([&] { return bench.log(id) == "up\n"; });
    bench.send(id, Terminate{wall_now() + milliseconds(id == 1 ? 20'000 : 200)});
  }
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 75);
  EXPECT_EQ(bench.wait_for<Exited>(2).signal, SIGKILL);
}

TEST(Supervisors, RunsAsTheSubmitterForGood) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  TaskBench bench;
  auto task = bench.python(1,
                           "print(os.getresuid(), os.getresgid(), sorted(os.getgroups()))\n"
                           "print(os.umask(0), [f for f in os.listdir('/proc/self/fd')][3:])\n"
                           "print([l for l in open('/proc/self/status') if 'NoNewPrivs' in l or "
                           "'SigBlk' in l or 'SigIgn' in l])\n"
                           "print(os.getsid(0)==os.getpid(), sorted(os.environ))\n"
                           "try: os.setuid(0); print('root again')\n"
                           "except PermissionError: print('no way back')\n"
                           "print(os.access(sys.argv[1], os.R_OK))\n");
  task.uid = 65534;
  task.gid = 65534;
  task.groups = {100, 200};
  task.umask = 027;
  task.environment = {"A=b"};
  bench.start(task);
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 0);
  EXPECT_EQ(bench.log(1),
            "(65534, 65534, 65534) (65534, 65534, 65534) [100, 200]\n"
            "23 ['3', '4']\n"  // its contract connection and the listing itself
            "['SigBlk:\\t0000000000000000\\n', 'SigIgn:\\t0000000001001000\\n', "
            "'NoNewPrivs:\\t1\\n']\n"  // what python itself ignores: SIGPIPE and SIGXFSZ
            "True ['A', 'LC_CTYPE', 'NEAP_SOCKET']\n"
            "no way back\n"
            "False\n");
}

TEST(Supervisors, FiftyAtOnce) {
  TaskBench bench;
  for (std::uint64_t id = 1; id <= 50; ++id) {
    bench.start(bench.shell(id, "echo " + std::to_string(id) + "; exit " + std::to_string(id)));
  }
  for (std::uint64_t id = 1; id <= 50; ++id) {
    EXPECT_EQ(bench.wait_for<Exited>(id).code, static_cast<std::int32_t>(id));
    EXPECT_EQ(bench.log(id), std::to_string(id) + "\n");
  }
}

}  // namespace
}  // namespace neap::local
