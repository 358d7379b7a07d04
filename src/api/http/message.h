// One request and its answer, without a trace of the library that carries them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/http/stream.h"

namespace neap::api::http {

// Who is at the other end. Over a UNIX socket the kernel says it; over TCP the token did.
struct Peer {
  bool by_token = false;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int32_t pid = 0;
};

struct Request {
  std::string method;                             // "GET"
  std::string path;                               // decoded, without the query
  std::map<std::string, std::string> query;       // decoded; of a name given twice, the last
  std::map<std::string, std::string> parameters;  // {name} in the route's pattern
  std::string last_event_id;
  std::string body;
  Peer peer;
};

struct Response {
  int status = 200;
  std::string body;  // JSON
  int retry_after_s = 0;
  // When set, the answer is a stream of events. Called once, on a worker thread, when it begins.
  std::function<void(std::shared_ptr<Stream>)> stream;
};

using Handler = std::function<Response(const Request&)>;

}  // namespace neap::api::http
