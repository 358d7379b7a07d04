// Does each method of isolation hold on this machine? Each is tried under contention with real
// load in throwaway groups, five seconds in all, before it is offered (B1).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/local/isolation.h"
#include "core/model/result.h"

namespace neap::local {

struct VerifyPlace {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string folder;                   // a file of 32 MiB is written there for I/O
  std::vector<std::string> interfaces;  // none: nothing that tasks send can be limited
};

// Checks these methods, one after the other; `go_on` is asked between them.
[[nodiscard]] MethodChecks verify_methods(const VerifyPlace& place,
                                          const std::vector<Method>& methods,
                                          const std::function<bool()>& go_on);

// Results hold until the machine boots: what was measured once need not be again by the next pool.
// `subject` says what they are of: kernel, hierarchy, disk, interfaces.
[[nodiscard]] std::string subject_of(const VerifyPlace& place);
inline constexpr std::size_t kept_checks_limit = 64 * 1024;
[[nodiscard]] std::string checks_text(std::string_view subject, const MethodChecks& checks);
// None when the text is of another subject or no such text.
[[nodiscard]] std::optional<MethodChecks> parse_checks(std::string_view text,
                                                       std::string_view subject);

// Takes the results kept in `file`, checks what is missing or failed there, and keeps them.
[[nodiscard]] MethodChecks verify_kept(const VerifyPlace& place, const std::string& file,
                                       const std::function<bool()>& go_on);

}  // namespace neap::local
