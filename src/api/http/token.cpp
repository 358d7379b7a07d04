#include "api/http/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "api/http/socket.h"

namespace neap::api::http {

namespace {
constexpr std::size_t shortest = 32;
constexpr std::size_t longest = 1024;
}  // namespace

Result<Token> Token::read(const std::string& path) {
  const Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::unavailable, path + " cannot be read: " + std::strerror(errno),
                "api.tcp.token_file");
  }
  if (!S_ISREG(status.st_mode) || (status.st_mode & 077) != 0 || status.st_uid != ::geteuid()) {
    return fail(ErrorCode::permission_denied,
                path + " must be a file of mode 0600 that belongs to the daemon's user",
                "api.tcp.token_file");
  }
  char text[longest + 2];
  const ssize_t got = ::read(file.get(), text, sizeof text);
  std::string secret(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < shortest || secret.size() > longest ||
      secret.find_first_of(" \t\r\n") != std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                path + " must hold one line of 32 to 1024 characters without spaces",
                "api.tcp.token_file");
  }
  return Token(std::move(secret));
}

bool Token::opens(std::string_view authorization) const {
  constexpr std::string_view scheme = "Bearer ";
  if (!authorization.starts_with(scheme)) return false;
  const std::string_view given = authorization.substr(scheme.size());
  // The length is no secret worth hiding; which character is wrong is.
  unsigned difference = given.size() == secret_.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret_.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(secret_[i] ^ other);
  }
  return difference == 0;
}

}  // namespace neap::api::http
