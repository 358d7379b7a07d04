#include "journal/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace neap::journal {
namespace {

// Fixed places, so that each part is overwritten in one small write:
//   "pid 0000012345\n"  "durable <20 digits> <chain> <check>\n"
constexpr std::size_t pid_bytes = 15;
constexpr std::size_t anchor_head_bytes = 8 + 20 + 1 + 32;
constexpr std::size_t anchor_bytes = anchor_head_bytes + 1 + 32 + 1;

std::string encode(const Anchor& anchor) {
  char number[24];
  std::snprintf(number, sizeof number, "%020llu", static_cast<unsigned long long>(anchor.sequence));
  const std::string head = "durable " + std::string(number) + " " + to_hex(anchor.chain);
  return head + " " + to_hex(hash_of(bytes_of(std::string_view(head)))) + "\n";
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<Anchor> decode(std::string_view text) {
  if (text.size() != anchor_bytes || !text.starts_with("durable ")) return std::nullopt;
  const std::string_view head = text.substr(0, anchor_head_bytes);
  if (text.substr(anchor_head_bytes + 1, 32) != to_hex(hash_of(bytes_of(head)))) {
    return std::nullopt;
  }
  Anchor anchor;
  for (const char c : head.substr(8, 20)) {
    anchor.sequence = anchor.sequence * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const std::string_view hex = head.substr(29, 32);
  for (std::size_t i = 0; i < anchor.chain.size(); ++i) {
    anchor.chain[i] = static_cast<std::byte>(digit_of(hex[2 * i]) * 16 + digit_of(hex[2 * i + 1]));
  }
  return anchor;
}

std::string read_at(int file, std::size_t size, off_t offset) {
  std::string text(size, '\0');
  const ssize_t got = ::pread(file, text.data(), size, offset);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

Result<void> write_at(int file, const std::string& text, off_t offset, const std::string& path) {
  const ssize_t put = ::pwrite(file, text.data(), text.size(), offset);
  if (put == static_cast<ssize_t>(text.size())) return {};
  const char* reason = put < 0 ? std::strerror(errno) : "short write";
  return fail(ErrorCode::unavailable, std::string("cannot write the lock file: ") + reason, path);
}

tl::unexpected<Error> refused(int file, const std::string& path, const std::string& journal_path) {
  const std::string text = read_at(file, pid_bytes, 0);
  std::string holder = "another process";
  if (text.size() == pid_bytes && text.starts_with("pid ")) {
    holder = "process " + std::to_string(std::strtoll(text.c_str() + 4, nullptr, 10));
  }
  return fail(ErrorCode::conflict,
              "the journal " + journal_path + " is open for writing by " + holder, path);
}

}  // namespace

Result<WriterLock> WriterLock::acquire(const std::string& journal_path) {
  const std::string path = journal_path + "-lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    return fail(ErrorCode::unavailable,
                std::string("cannot open the lock file: ") + std::strerror(errno), path);
  }
  WriterLock lock(file, path, std::nullopt);
  // flock and not fcntl: the lock belongs to the open file, so a second opening in the very same
  // process is refused too, and closing some other descriptor does not drop it.
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return refused(file, path, journal_path);
  lock.anchor_ = decode(read_at(file, anchor_bytes, pid_bytes));
  char pid[24];
  std::snprintf(pid, sizeof pid, "pid %010d\n", static_cast<int>(::getpid()));
  if (auto written = write_at(file, pid, 0, path); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return lock;
}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      anchor_(other.anchor_) {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(anchor_, other.anchor_);
  return *this;
}

WriterLock::~WriterLock() {
  if (file_ >= 0) ::close(file_);
}

Result<void> WriterLock::write_anchor(const Anchor& anchor) {
  return write_at(file_, encode(anchor), pid_bytes, path_);
}

}  // namespace neap::journal
