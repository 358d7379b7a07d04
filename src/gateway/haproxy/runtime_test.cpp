#include "gateway/haproxy/runtime.h"

#include <gtest/gtest.h>

namespace neap::gateway {
namespace {

TEST(HaproxyRuntime, StatisticsByColumnName) {
  const auto read = read_statistics(
      "# svname,pxname,scur,qcur,slim,type,status,addr\n"
      "a1,chat,3,1,4,2,no check,127.0.0.1:9201\n"
      "a2,chat,2,0,4,2,DRAIN,127.0.0.1:9202\n"
      "BACKEND,chat,9,5,200,1,UP,\n\n");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->servers.size(), 2U);
  EXPECT_EQ(read->servers[0].server, "a1");
  EXPECT_EQ(read->servers[0].in_flight, 3);
  EXPECT_EQ(read->servers[0].queued, 1);
  EXPECT_EQ(read->servers[0].max_concurrency, 4);
  EXPECT_EQ(read->servers[0].port, 9201);
  EXPECT_TRUE(read->servers[0].up);
  EXPECT_FALSE(read->servers[1].up);
  ASSERT_EQ(read->backends.size(), 1U);
  EXPECT_EQ(read->backends[0].queued, 5);
}

// Unknown is not zero.
TEST(HaproxyRuntime, S13_OddStatisticsAreAnError) {
  EXPECT_FALSE(read_statistics(""));
  EXPECT_FALSE(read_statistics("a1,chat,3\n"));
  EXPECT_FALSE(read_statistics("# pxname,svname\nchat,a1\n"));
  EXPECT_FALSE(read_statistics("# svname,pxname,scur,qcur,slim,type,status,addr\na1,chat\n"));
}

TEST(HaproxyRuntime, WorkersCurrentAndOld) {
  const WorkerList workers = read_workers(
      "#<PID>          <type>          <reloads>       <uptime>        <version>\n"
      "26293           master          1 [failed: 0]   0d00h00m02s     2.6.12\n"
      "# workers\n"
      "26314           worker          0               0d00h00m00s     2.6.12\n"
      "# old workers\n"
      "26296           worker          1               0d00h00m01s     2.6.12\n"
      "# programs\n\n");
  EXPECT_EQ(workers.current, 26314);
  EXPECT_EQ(workers.old, std::vector<pid_t>{26296});
  EXPECT_EQ(read_workers("").current, 0);
}

TEST(HaproxyRuntime, NobodyListens) {
  const auto answer = run_command("/nowhere/admin.sock", "show info");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(run_command("/" + std::string(200, 'x'), "show info"));
}

}  // namespace
}  // namespace neap::gateway
