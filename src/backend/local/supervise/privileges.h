// Becoming the submitter, for good.
#pragma once

#include "backend/local/spec.h"

namespace neap::local {

// Sets groups, user, umask and no_new_privs. A caller that is not root can only stay who it is.
// Returns the step that failed (with errno set), nullptr when all is done.
[[nodiscard]] const char* become_submitter(const SupervisedTask& task);

// Has the kernel kill the caller when its parent dies. After become_submitter: a change of user
// clears it.
[[nodiscard]] bool die_with_parent();

// Signals as a fresh program expects them: none blocked, none ignored.
void reset_signals();

}  // namespace neap::local
