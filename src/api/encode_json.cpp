#include "api/encode_json.h"

#include <nlohmann/json.hpp>

#include "api/view.h"

namespace neap::api {

OrderedJson known(std::int64_t value) {
  return value == unknown ? OrderedJson(nullptr) : OrderedJson(value);
}

std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace neap::api
