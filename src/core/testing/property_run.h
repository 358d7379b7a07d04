// One property, checked with so many cases: for properties that count what their cases met.
#pragma once

#include <rapidcheck.h>

#include <sstream>
#include <string>

namespace neap::testing {

struct Verdict {
  bool holds = false;
  std::string message;  // the counterexample, and its seed
};

// `one_case` fails by RC_ASSERT.
template <class Case>
[[nodiscard]] Verdict check_property(int cases, rc::detail::TestParams params,
                                     const Case& one_case) {
  params.maxSuccess = cases;
  const auto result =
      rc::detail::checkTestable([&] { one_case(); }, rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  return {result.template is<rc::detail::SuccessResult>(), message.str()};
}

}  // namespace neap::testing
