// The pool's end of NEAP_SOCKET: any number of bad lines and any flood of good ones cost the
// supervisor a bounded amount of memory, time and disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backend/local/contract.h"
#include "backend/local/event_loop.h"
#include "backend/local/fd.h"
#include "backend/local/unix_socket.h"
#include "core/model/result.h"

namespace neap::local {

class ContractServer {
 public:
  struct Handlers {
    std::function<void(ContractMessage)> message;
    // The first malformed line only; all are counted.
    std::function<void(std::int64_t line, const std::string& reason)> fault;
    std::function<bool()> room;  // is there room for more? Else the task waits
  };

  [[nodiscard]] static Result<std::unique_ptr<ContractServer>> open(EventLoop& loop,
                                                                    const std::string& path,
                                                                    SocketOwner owner,
                                                                    Handlers handlers);
  ~ContractServer();
  ContractServer(const ContractServer&) = delete;
  ContractServer& operator=(const ContractServer&) = delete;

  // Has any process of the task said hello and is still connected?
  [[nodiscard]] bool spoken_to() const;
  [[nodiscard]] std::int64_t faults() const { return faults_; }

  // Requests stand until they are met or withdrawn: who connects later hears them too.
  void request_yield(std::string line);
  void request_checkpoint(std::string line);
  void withdraw_yield();

  // Takes in what the ended task still had in its sockets.
  void drain();

 private:
  struct Connection {
    Fd fd;
    LineSplitter lines{contract_line_limit};
    Outbox outbox;
    bool greeted = false;
    bool ended = false;
  };

  ContractServer(EventLoop& loop, Fd listening, std::string path, SocketOwner owner,
                 Handlers handlers);
  void accept_all();
  void on_connection(int fd, std::uint32_t events);
  void take_lines(Connection& connection);
  void on_line(Connection& connection, const LineSplitter::Line& line);
  void fault(std::int64_t line, const std::string& reason);
  void broadcast(const std::string& line);
  void push(Connection& connection, const std::string& line);
  void close(int fd);
  void listen_again(Connection& connection);
  void refill();
  void hold();
  void resume();

  EventLoop& loop_;
  Fd listening_;
  std::string path_;
  SocketOwner owner_;
  Handlers handlers_;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::optional<std::string> standing_yield_;
  std::optional<std::string> standing_checkpoint_;
  std::int64_t faults_ = 0;
  std::int64_t tokens_;
  Time refilled_;
  std::optional<EventLoop::TimerId> held_;  // out of tokens: nothing is read until it fires
};

}  // namespace neap::local
