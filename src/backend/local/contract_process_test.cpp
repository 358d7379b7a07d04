// The contract as real processes use and abuse it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "backend/local/clock.h"
#include "backend/local/control.h"
#include "backend/local/launcher.h"
#include "backend/local/testing/bench_of_tasks.h"
#include "backend/local/unix_socket.h"

namespace neap::local {
namespace {

using testing::has;
using testing::TaskBench;

template <class Body>
std::vector<Body> all(const std::vector<Report>& reports) {
  std::vector<Body> out;
  for (const Report& report : reports) {
    if (const auto* body = std::get_if<Body>(&report.body)) out.push_back(*body);
  }
  return out;
}

TEST(ContractProcess, StepsAreAddedUpAndComeBeforeTheCheckpointAndTheEnd) {
  TaskBench bench;
  auto task = bench.python(1,
                           "for n in range(1,101): say('step',n=n,count=1,seconds=0.01)\n"
                           "say('checkpoint',step=100,path='/c',bytes=5,seconds=0.5,"
                           "captured_us=77,stall_seconds=0.25)\n"
                           "for n in range(101,111): say('step',n=n,seconds=0.01)\n"
                           "say('yielding',step=110)\n"
                           "say('step',n=111,seconds=1); sys.exit(75)\n");
  task.steps_every = seconds(10);
  bench.start(task);
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 75);
  const auto reports = bench.reports(1);
  const auto steps = all<Steps>(reports);
  ASSERT_EQ(steps.size(), 3U);  // not one a step
  EXPECT_EQ(steps[0].last, 100);
  EXPECT_EQ(steps[0].count, 100);
  EXPECT_EQ(steps[0].busy, seconds(1));
  EXPECT_EQ(steps[1].count, 10);
  EXPECT_EQ(steps[2].last, 111);
  const auto checkpoint = all<Checkpoint>(reports).at(0);
  EXPECT_EQ(checkpoint.captured, Time(77));
  EXPECT_EQ(checkpoint.stall, milliseconds(250));
  std::string order;
  for (const Report& report : reports) order += std::to_string(report.body.index());
  EXPECT_EQ(order,
            "0"
            "4"
            "5"
            "4"
            "6"
            "4"
            "7");  // indices of ReportBody
}

TEST(ContractProcess, RepeatedHelloAndCheckpointOfAReconnectionCountOnce) {
  TaskBench bench;
  bench.start(
      bench.python(1,
                   "for i in range(3):\n"
                   "  _s=socket.socket(socket.AF_UNIX); _s.connect(os.environ['NEAP_SOCKET'])\n"
                   "  say('hello',version=1,capabilities=['boundary'])\n"
                   "  say('checkpoint',step=1,path='/c',bytes=1,seconds=0,captured_us=5)\n"));
  bench.wait_for<Exited>(1);
  EXPECT_EQ(all<Hello>(bench.reports(1)).size(), 1U);
  EXPECT_EQ(all<Checkpoint>(bench.reports(1)).size(), 1U);
}

TEST(ContractProcess, GarbageIsToldOnceCountedAndNeverFatal) {
  TaskBench bench;
  bench.start(bench.python(1,
                           "say('hello',version=1)\n"
                           "raw(b'\\x00\\xff\\xfe garbage\\n')\n"
                           "raw(b'{\"type\":\"step\"}\\n' * 10)\n"
                           "raw(b'[' * 1000 + b'\\n')\n"
                           "raw(b'x' * 300000 + b'\\n')\n"
                           "say('checkpoint',step=5,path='/c',bytes=1,seconds=0)\n"
                           "raw(b'{\"type\":\"ste')\n"));
  EXPECT_EQ(bench.wait_for<Exited>(1).contract_faults, 13);
  const auto faults = all<ContractFault>(bench.reports(1));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].line, 2);
  EXPECT_EQ(faults[0].reason, "column 1: expected a value");
  EXPECT_EQ(all<Checkpoint>(bench.reports(1)).at(0).step, 5);
}

TEST(ContractProcess, FloodIsSlowedDownAndNothingIsLost) {
  TaskBench bench;
  bench.start(bench.python(1,
                           "t=time.monotonic()\n"
                           "raw(b''.join(b'{\"type\":\"step\",\"n\":%d,\"seconds\":0}\\n' % n "
                           "for n in range(1,12001)))\n"
                           "print(time.monotonic()-t)\n"));
  bench.wait_for<Exited>(1);
  std::int64_t count = 0;
  for (const Steps& steps : all<Steps>(bench.reports(1))) count += steps.count;
  EXPECT_EQ(count, 12000);
  EXPECT_GT(std::stod(bench.log(1)), 0.05);  // the sender had to wait
  EXPECT_LT(all<Steps>(bench.reports(1)).size(), 100U);
}

TEST(ContractProcess, YieldReachesTheSdkEvenWhenItConnectsLater) {  // D2
  TaskBench bench;
  auto task = bench.python(1, "");
  task.argv[3] =
      "import os,time\nprint('up',flush=True)\n"
      "while not os.path.exists('go'): time.sleep(0.01)\n" +
      task.argv[3] + "say('hello',version=1)\nm=hear(); print(m['type'],m['at'],m['by'])\n";
  bench.start(task);
  bench.wait_until([&] { return bench.log(1) == "up\n"; });
  bench.send(1, RequestYield{YieldAt::boundary, Time(42)});
  bench.send(1, Drain{});  // answered by nothing, but in order behind the yield
  FILE* go = std::fopen((bench.work() + "/go").c_str(), "w");
  ASSERT_NE(go, nullptr);
  (void)std::fclose(go);
  bench.wait_for<Exited>(1);
  EXPECT_EQ(bench.log(1), "up\nyield boundary 42\n");
}

TEST(ContractProcess, RequestsAndTheirWithdrawalReachTheSdk) {
  TaskBench bench;
  bench.start(bench.python(1,
                           "say('hello',version=1)\n"
                           "for i in range(3): print(hear(),flush=True)\n"));
  bench.wait_for<Hello>(1);
  bench.send(1, RequestCheckpoint{});
  bench.send(1, RequestYield{YieldAt::now, Time(7)});
  bench.send(1, WithdrawYieldRequest{});
  bench.wait_for<Exited>(1);
  EXPECT_EQ(bench.log(1),
            "{'type': 'checkpoint'}\n{'type': 'yield', 'at': 'now', 'by': 7}\n"
            "{'type': 'cancel'}\n");
}

TEST(ContractProcess, WithoutSdkAYieldIsSigterm) {
  TaskBench bench;
  auto task = bench.shell(1, "trap 'exit 75' TERM; echo up; while :; do sleep 0.02; done");
  task.signals = true;
  bench.start(task);
  bench.wait_until([&] { return bench.log(1) == "up\n"; });
  bench.send(1, RequestYield{YieldAt::boundary, Time::never()});
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 75);
}

TEST(ContractProcess, WatchedFilesAreBoundariesAndAYieldWaitsForOne) {
  TaskBench bench;
  auto task = bench.shell(1,
                          "trap 'echo term; exit 75' TERM; mkdir out; echo up\n"
                          "while [ ! -e go ]; do sleep 0.02; done\n"
                          "mkdir out/checkpoint-30; echo data > out/checkpoint-30/w\n"
                          "while :; do sleep 0.02; done");
  task.watch = "out/checkpoint-*";
  task.watch_settle = milliseconds(200);
  task.watch_interval = milliseconds(20);
  bench.start(task);
  bench.wait_until([&] { return bench.log(1) == "up\n"; });
  bench.send(1, RequestYield{YieldAt::boundary, Time::never()});
  FILE* go = std::fopen((bench.work() + "/go").c_str(), "w");
  ASSERT_NE(go, nullptr);
  (void)std::fclose(go);
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 75);
  const auto checkpoint = all<Checkpoint>(bench.reports(1)).at(0);
  EXPECT_EQ(checkpoint.step, 30);
  EXPECT_EQ(checkpoint.bytes, 5);
  EXPECT_TRUE(bench.log(1).ends_with("term\n"));
}

TEST(ContractProcess, LastCheckpointCountsAfterAGoodEndNotAfterACrash) {
  for (const bool crash : {false, true}) {
    TaskBench bench;
    auto task = bench.shell(
        1, std::string("echo x > checkpoint-9; ") + (crash ? "kill -KILL $$" : "exit 75"));
    task.watch = "checkpoint-*";
    bench.start(task);
    bench.wait_for<Exited>(1);
    EXPECT_EQ(has<Checkpoint>(bench.reports(1)), !crash);
    EXPECT_TRUE(bench.reports(1).back().terminal());
  }
}

TEST(ContractProcess, SlowReaderOfReportsHoldsNothingUp) {
  TaskBench bench;
  bench.stop_client();
  bench.start_client();
  bench.start(bench.python(1,
                           "for n in range(60): say('checkpoint',step=n,path='/'+'c'*4000,"
                           "bytes=1,seconds=0)\n"
                           "print('done',flush=True)\n"));
  bench.wait_for<Started>(1);
  // A second listener that asks for everything and then does not read.
  auto slow = connect_to(control_path(bench.directory(1)));
  ASSERT_TRUE(slow);
  const std::string hello = control_line(ResumeAfter{0});
  ASSERT_EQ(::send(slow->get(), hello.data(), hello.size(), 0), static_cast<ssize_t>(hello.size()));
  EXPECT_EQ(bench.wait_for<Exited>(1).code, 0);
  std::string text;
  bench.wait_until([&] {
    const auto bytes = receive_some(slow->get());
    if (!bytes) throw std::runtime_error("the supervisor hung up");
    text += *bytes;
    return text.find("\"exited\"") != std::string::npos && text.ends_with('\n');
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 63);  // greeting, started, 60, exited
}

TEST(ContractProcess, UnknownCommandsAreAnsweredWithAnError) {
  TaskBench bench;
  bench.start(bench.shell(1, "sleep 1000"));
  bench.wait_for<Started>(1);
  auto socket = connect_to(control_path(bench.directory(1)));
  ASSERT_TRUE(socket);
  const std::string bad = "{\"command\":\"dance\"}\nnot json\n";
  ASSERT_EQ(::send(socket->get(), bad.data(), bad.size(), 0), static_cast<ssize_t>(bad.size()));
  std::string text;
  bench.wait_until([&] {
    const auto bytes = receive_some(socket->get());
    if (!bytes) throw std::runtime_error("the supervisor hung up");
    text += *bytes;
    return std::count(text.begin(), text.end(), '\n') == 3;
  });
  EXPECT_NE(text.find("expected ack, checkpoint, yield"), std::string::npos) << text;
  EXPECT_FALSE(has<Exited>(bench.reports(1)));
}

TEST(ContractProcess, SocketsAreForTheirOwnersOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  TaskBench bench;
  // 65534 runs the task and may speak to its contract, not to the control socket.
  auto task = bench.python(1,
                           "s=socket.socket(socket.AF_UNIX)\n"
                           "try: s.connect(sys.argv[2]+'/control.sock'); print('control')\n"
                           "except PermissionError: print('refused')\n"
                           "say('hello',version=1)\n");
  task.uid = task.gid = 65534;
  task.groups.clear();
  bench.start(task);
  bench.wait_for<Exited>(1);
  EXPECT_EQ(bench.log(1), "refused\n");
  EXPECT_TRUE(has<Hello>(bench.reports(1)));
}

TEST(ContractProcess, LogIsRotatedAtItsLimit) {
  TaskBench bench;
  auto task = bench.shell(1, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done");
  task.log = {10'000, 2};
  bench.start(task);
  bench.wait_for<Exited>(1);
  const std::string log = bench.log(1);
  EXPECT_TRUE(log.ends_with("line 2999\n"));
  EXPECT_LE(log.size(), 20'000U);
  EXPECT_TRUE(log.starts_with("line "));
}

}  // namespace
}  // namespace neap::local
