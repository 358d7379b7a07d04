#include <gtest/gtest.h>

#include "core/testing/script.h"
#include "core/what_if.h"

namespace neap {
namespace {

using testing::Script;

// F6, D11: time alone starts a task that is held back.
TEST(Starts, F6_WhatWouldStartOneThatIsHeldBack) {
  Script s;
  s.spec.starts = {.at_once = 1, .loading = minutes(2)};
  s.configure();
  s.node("n0", "d0", 4);
  ASSERT_TRUE(s.submit(Script::training("a")));
  ASSERT_TRUE(s.submit(Script::training("b")));
  const Unblock unblock = find_unblock(s.state, s.task("b").id, s.now);
  EXPECT_EQ(unblock.at, s.now + minutes(2));
  EXPECT_EQ(to_text(s.state, unblock), "nothing to do: it starts again by itself");
}

}  // namespace
}  // namespace neap
