// The owner of a file descriptor, by its short name in this folder.
#pragma once

#include "posix/fd.h"

namespace neap::local {

using posix::Fd;

}  // namespace neap::local
