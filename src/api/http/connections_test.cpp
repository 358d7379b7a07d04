#include "api/http/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace neap::api::http {
namespace {

using Clock = Connections::Clock;

// E1: one user cannot keep the others out.
TEST(Connections, EachUserHasAShare) {
  Connections connections(2, 1000);
  const auto now = Clock::now();
  EXPECT_TRUE(connections.opened(10, 2000, now));
  EXPECT_TRUE(connections.opened(11, 2000, now));
  EXPECT_FALSE(connections.opened(12, 2000, now));
  EXPECT_TRUE(connections.opened(13, 3000, now));
  for (int fd = 20; fd < 30; ++fd) {
    EXPECT_TRUE(connections.opened(fd, fd % 2 == 0 ? 1000 : 0, now));
  }
  EXPECT_TRUE(connections.opened(14, std::nullopt, now));  // who comes with a token is not a user
  connections.closed(12);
  connections.closed(11);
  EXPECT_TRUE(connections.opened(11, 2000, now));
}

TEST(Connections, OnlyThoseThatWaitForARequestAreOverdue) {
  Connections connections(10, 0);
  int waiting[2];
  int busy[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, waiting), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, busy), 0);
  const auto now = Clock::now();
  connections.opened(waiting[0], 1, now);
  connections.opened(busy[0], 1, now);
  connections.request_came(busy[0]);
  const auto ended = [](int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
  };
  connections.shut_overdue(now);
  EXPECT_FALSE(ended(waiting[1]));
  connections.shut_overdue(now + std::chrono::seconds(1));
  EXPECT_TRUE(ended(waiting[1]));
  EXPECT_FALSE(ended(busy[1]));
  connections.request_ended(busy[0], now + std::chrono::seconds(2));
  connections.shut_overdue(now + std::chrono::seconds(1));
  EXPECT_FALSE(ended(busy[1]));
  connections.shut_overdue(now + std::chrono::seconds(3));
  EXPECT_TRUE(ended(busy[1]));
  for (const int fd : {waiting[0], waiting[1], busy[0], busy[1]}) ::close(fd);
}

}  // namespace
}  // namespace neap::api::http
