#include "api/authority.h"

namespace neap::api {

bool Authority::administers(const Caller& caller) const {
  return caller.uid == 0 || caller.uid == daemon_uid_;
}

bool Authority::sees(const Caller& caller, std::uint32_t owner_uid) const {
  return administers(caller) || caller.uid == owner_uid;
}

Result<void> Authority::may_manage(const Caller& caller, const Subject& subject) const {
  if (sees(caller, subject.owner_uid)) return {};
  return fail(ErrorCode::permission_denied, subject.name + " belongs to another user, and " +
                                                caller.user + " does not administer this pool");
}

Result<void> Authority::may_administer(const Caller& caller) const {
  if (administers(caller)) return {};
  return fail(ErrorCode::permission_denied,
              "only the daemon's user and root may do this, and " + caller.user + " is neither");
}

}  // namespace neap::api
