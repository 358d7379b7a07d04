#include "backend/local/supervise/contract_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "backend/local/clock.h"
#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

// A step costs one token; what costs an fsync or a place in the spool costs more. Beyond this
// the sockets are simply not read: the sender waits, nothing is lost.
constexpr std::int64_t tokens_per_second = 2'000;
constexpr std::int64_t tokens_most = 4'000;
constexpr std::int64_t fault_cost = 20;
constexpr std::int64_t report_cost = 100;
constexpr Micros hold_time = milliseconds(100);
constexpr std::size_t contract_connections_limit = 64;
constexpr std::size_t contract_outbox_limit = 64 * 1024;

std::int64_t cost_of(const ContractMessage& message) {
  return std::holds_alternative<StepMessage>(message) ? 1 : report_cost;
}

}  // namespace

Result<std::unique_ptr<ContractServer>> ContractServer::open(EventLoop& loop,
                                                             const std::string& path,
                                                             SocketOwner owner, Handlers handlers) {
  auto listening = listen_on(path, owner);
  if (!listening) return tl::unexpected(listening.error());
  return std::unique_ptr<ContractServer>(
      new ContractServer(loop, std::move(*listening), path, owner, std::move(handlers)));
}

ContractServer::ContractServer(EventLoop& loop, Fd listening, std::string path, SocketOwner owner,
                               Handlers handlers)
    : loop_(loop),
      listening_(std::move(listening)),
      path_(std::move(path)),
      owner_(owner),
      handlers_(std::move(handlers)),
      tokens_(tokens_most),
      refilled_(steady_now()) {
  loop_.watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { accept_all(); });
}

ContractServer::~ContractServer() {
  if (held_) loop_.cancel(*held_);
  for (const auto& [fd, connection] : connections_) loop_.forget(fd);
  loop_.forget(listening_.get());
  (void)::unlink(path_.c_str());
}

bool ContractServer::spoken_to() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& entry) { return entry.second->greeted; });
}

void ContractServer::accept_all() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const auto uid = peer_uid(fd.get());
    const bool known = uid && (*uid == owner_.uid || *uid == ::geteuid());
    // Beyond the limit the newest is turned away: the task's first connections keep working.
    if (!known || connections_.size() >= contract_connections_limit) continue;
    const int number = fd.get();
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    const std::uint32_t events = held_ ? 0U : static_cast<std::uint32_t>(EPOLLIN);
    connections_[number] = std::move(connection);
    loop_.watch(number, events, [this, number](std::uint32_t now) { on_connection(number, now); });
  }
}

void ContractServer::on_connection(int fd, std::uint32_t events) {
  Connection& connection = *connections_.at(fd);
  if ((events & EPOLLOUT) != 0U && connection.outbox.flush(fd) == Outbox::State::broken) {
    connection.ended = true;
  }
  // A hang-up is told even while nothing is asked for; what was sent before it waits its turn.
  if (held_) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0U) loop_.forget(fd);
    return;
  }
  if (const auto bytes = receive_some(fd); bytes) {
    connection.lines.feed(*bytes);
  } else {
    connection.ended = true;
  }
  take_lines(connection);
  if (connection.ended && !held_) return close(fd);
  listen_again(connection);
}

void ContractServer::listen_again(Connection& connection) {
  if (connection.ended) return loop_.forget(connection.fd.get());
  const std::uint32_t in = held_ ? 0U : static_cast<std::uint32_t>(EPOLLIN);
  const std::uint32_t out =
      connection.outbox.size() > 0 ? static_cast<std::uint32_t>(EPOLLOUT) : 0U;
  const int fd = connection.fd.get();
  // It may have been forgotten while held.
  loop_.forget(fd);
  loop_.watch(fd, in | out, [this, fd](std::uint32_t now) { on_connection(fd, now); });
}

void ContractServer::take_lines(Connection& connection) {
  refill();
  while (tokens_ > 0 && handlers_.room()) {
    const auto line = connection.lines.next();
    if (!line) return;
    on_line(connection, *line);
  }
  hold();
}

void ContractServer::on_line(Connection& connection, const LineSplitter::Line& line) {
  if (line.too_long) return fault(line.number, "longer than 65536 bytes");
  auto message = parse_contract_line(line.text);
  if (!message) return fault(line.number, message.error().message);
  tokens_ -= cost_of(*message);
  if (std::holds_alternative<HelloMessage>(*message)) {
    connection.greeted = true;
    if (standing_checkpoint_) push(connection, *standing_checkpoint_);
    if (standing_yield_) push(connection, *standing_yield_);
  }
  if (std::holds_alternative<CheckpointMessage>(*message)) standing_checkpoint_.reset();
  handlers_.message(std::move(*message));
}

void ContractServer::fault(std::int64_t line, const std::string& reason) {
  tokens_ -= fault_cost;
  if (faults_++ == 0) handlers_.fault(line, reason);
}

void ContractServer::refill() {
  const Time now = steady_now();
  const std::int64_t earned = (now - refilled_).value * tokens_per_second / 1'000'000;
  if (earned <= 0) return;
  tokens_ = std::min(tokens_ + earned, tokens_most);
  refilled_ = now;
}

void ContractServer::hold() {
  if (held_) return;
  held_ = loop_.after(hold_time, [this] { resume(); });
  for (auto& [fd, connection] : connections_) listen_again(*connection);
}

void ContractServer::resume() {
  held_.reset();
  std::vector<int> open;
  for (const auto& [fd, connection] : connections_) open.push_back(fd);
  for (const int fd : open) {
    Connection& connection = *connections_.at(fd);
    take_lines(connection);
    if (held_) return;
    if (connection.ended) {
      close(fd);
    } else {
      listen_again(connection);
    }
  }
}

void ContractServer::drain() {
  if (held_) loop_.cancel(*held_);
  held_.reset();
  accept_all();
  // The sender is dead, so this is at most what fitted into the sockets; no rate needs limiting.
  for (auto& [fd, connection] : connections_) {
    for (;;) {
      while (const auto line = connection->lines.next()) on_line(*connection, *line);
      const auto bytes = receive_some(fd);
      if (!bytes || bytes->empty()) break;
      connection->lines.feed(*bytes);
    }
  }
}

void ContractServer::close(int fd) {
  loop_.forget(fd);
  connections_.erase(fd);
}

void ContractServer::push(Connection& connection, const std::string& line) {
  // A task that does not read its socket misses requests; the pool's own deadlines deal with it.
  if (connection.ended || connection.outbox.size() + line.size() > contract_outbox_limit) return;
  connection.outbox.push(line);
  if (connection.outbox.flush(connection.fd.get()) == Outbox::State::waiting) {
    listen_again(connection);
  }
}

void ContractServer::broadcast(const std::string& line) {
  for (auto& [fd, connection] : connections_) {
    if (connection->greeted) push(*connection, line);
  }
}

void ContractServer::request_yield(std::string line) {
  broadcast(line);
  standing_yield_ = std::move(line);
}

void ContractServer::request_checkpoint(std::string line) {
  broadcast(line);
  standing_checkpoint_ = std::move(line);
}

void ContractServer::withdraw_yield() {
  if (!standing_yield_) return;
  standing_yield_.reset();
  broadcast(cancel_request());
}

}  // namespace neap::local
