#include "gateway/haproxy/admission_script.h"

#include <cstdio>
#include <sstream>

namespace neap::gateway {
namespace {

// One list of those who wait for each service, in the order in which they are served: by class,
// within a class by the tag that their team's share gives them, then by arrival. All of HAProxy
// runs on one thread, so nothing here happens in the middle of something else; only core.msleep
// yields.
//
// A client that goes away ends its coroutine without a word. Its entry is known by `due`: whoever
// waits says when it looks again. A rule after the action answers whoever did not get through it.
constexpr std::string_view lua_program = R"lua(
local services = {}
local late = 0.5         -- s after `due`: the client has gone
local handover = 0.01    -- s of work that stand in HAProxy's own queue, so that no place stays free
local least_pause, longest_pause = 0.002, 0.05

-- A worker of before a reload cannot be told of new replicas: who waits in it goes on to the new.
local stopping, stopping_at = false, 0
local function is_stopping(now)
  if not stopping and now > stopping_at + 0.1 then
    stopping_at = now
    stopping = tonumber(core.get_info().Stopping) == 1
  end
  return stopping
end

local function clock()
  local now = core.now()
  return now.sec + now.usec / 1e6
end

function neap_service(name, values)
  local s = {name = name, list = {}, seq = 0, pruned = 0, shown = -1, tags = {},
             virtual = {0, 0, 0},
             shed = {0, 0, 0}, shed_at = {0, 0, 0}, passed = 0, passed_cost = 0,
             taken = {0, 0, 0}, rate = {0, 0, 0}, rated = clock()}
  for key, value in pairs(values) do s[key] = value end
  services[name] = s
end

function neap_figure(name, key, value) services[name][key] = value end

local function before(a, b)
  if a.class ~= b.class then return a.class < b.class end
  if a.tag ~= b.tag then return a.tag < b.tag end
  return a.seq < b.seq
end

local function insert(s, e)
  local list = s.list
  local i = #list
  while i > 0 and before(e, list[i]) do
    list[i + 1] = list[i]
    i = i - 1
  end
  list[i + 1] = e
end

local function remove(s, e)
  for i, other in ipairs(s.list) do
    if other == e then return table.remove(s.list, i) end
  end
end

local function prune(s, now)
  if now < s.pruned + 0.05 then return end
  s.pruned = now
  for i = #s.list, 1, -1 do
    local e = s.list[i]
    if e.due + late < now then
      e.lost = true
      table.remove(s.list, i)
    end
  end
end

local function publish(s, txn)
  if s.shown == #s.list then return end
  s.shown = #s.list
  txn:set_var(s.variable, s.shown)
end

-- What each class has taken of the replicas lately, in cost a second.
local function rates(s, now)
  local passed = now - s.rated
  if passed < 1 then return end
  local weight = math.min(1, passed / 5)
  for class = 1, 3 do
    s.rate[class] = s.rate[class] * (1 - weight) + s.taken[class] / passed * weight
    s.taken[class] = 0
  end
  s.rated = now
end

-- Seconds until so much cost of this class and those above it is served; nil: not known.
local function expected(s, class, cost)
  if s.mu <= 0 then return nil end
  local left = s.mu
  for above = 1, class - 1 do left = left - s.rate[above] end
  return cost / math.max(left, s.mu * 0.05)
end

local function cost_of(s, txn, class)
  if s.input == 0 and s.output == 0 then return 1 end
  local size = tonumber(txn:get_var("txn.size")) or 0
  local output = s["output" .. class]
  local asked = tonumber(txn:get_var("txn.max_tokens"))
  if asked and asked > 0 and asked < output then output = asked end
  return math.max(1, s.input * size / 4 + s.output * output)
end

local function tag_for(s, team, class, cost)
  local key = class .. team
  local start = math.max(s.virtual[class], s.tags[key] or 0)
  return start + cost, key
end

-- Places and cost before an entry in the list.
local function ahead_of(s, e)
  local cost, count = 0, 0
  for _, other in ipairs(s.list) do
    if other == e or before(e, other) then break end
    cost = cost + other.cost
    count = count + 1
  end
  return count, cost
end

local function retry_after(s, class)
  local cost = 0
  for _, e in ipairs(s.list) do
    if e.class <= class then cost = cost + e.cost end
  end
  return expected(s, class, cost) or 1
end

local function refuse(s, txn, e, status, wait)
  s.shed[e.class] = s.shed[e.class] + 1
  s.shed_at[e.class] = e.now
  txn:set_var("txn.deny", status)
  txn:set_var("txn.held", math.floor((e.now - e.came) * 1e6))
  txn:set_var("txn.retry", math.max(1, math.ceil(wait - 0.001)))
  txn:set_var("txn.retry_ms", math.max(1, math.ceil(wait * 1000)))
  publish(s, txn)
end

local function wake_time(s, now)
  local since = s.asleep and now - s.asleep or 0
  local whole = s.wake > 0 and s.wake or 5
  return math.max(1, whole - since)
end

-- Whether there is a place in the list for this newcomer. The last in order gives way to it.
local function find_place(s, e, limit)
  while #s.list >= limit do
    local last = s.list[#s.list]
    if not last or not before(e, last) or (last.class == e.class and last.team == e.team) then
      return false
    end
    table.remove(s.list)
    last.out = true
    if last.class == e.class then return true end
  end
  return true
end

-- Those below a class that is refused for its wait would wait longer still: none may stay.
local function clear_below(s, class)
  for i = #s.list, 1, -1 do
    if s.list[i].class <= class then return end
    s.list[i].out = true
    table.remove(s.list, i)
  end
end

local function allowance(s, e)
  local places = math.min(64, s.per_second * handover)
  -- Of a slow service nobody: `wait` bounds this list alone, and its first look often.
  if places < 1 then return 0 end
  if e.class < 3 then return math.max(2, math.ceil(places)) end
  -- Out of reach once it is in HAProxy's queue: nothing low goes there while others need its place.
  local lately = e.now - 2
  if s.shed_at[1] > lately or s.shed_at[2] > lately or (s.list[1] and s.list[1].class < 3) then
    return 0
  end
  return math.floor(places)
end

local function pause_of(s, short)
  if s.per_second <= 0 then return math.min(longest_pause, least_pause * short) end
  local pause = (short > 2 and 0.25 or 0.1) * short / s.per_second
  return math.min(longest_pause, math.max(least_pause, pause))
end

-- Waits in the list; returns nothing when it may go on, else status and seconds to stay away.
local function wait_in_list(s, txn, e)
  local f = txn.f
  local since = e.came
  local held = false
  while true do
    local count = ahead_of(s, e)
    local up = f:nbsrv(s.name) > 0
    local pause = longest_pause / 2
    if is_stopping(e.now) then
      txn:set_var("txn.handoff", 1)
      return
    end
    if up then
      if held then
        if s.asleep then s.wake = e.now - s.asleep end
        s.asleep, held, since = nil, false, e.now
      end
      local room = f:be_conn_free(s.name) - f:queue(s.name) + allowance(s, e)
      if count < room then return end
      if e.now - since >= s.wait then
        clear_below(s, e.class)
        return 429, retry_after(s, e.class)
      end
      pause = pause_of(s, count - room + 1)
    else
      held = true
      s.asleep = s.asleep or e.now
      if e.now - since >= s.hold_for then return 503, wake_time(s, e.now) end
    end
    e.due = e.now + pause
    core.msleep(math.ceil(pause * 1000))
    e.now = clock()
    if e.out and up then return 429, retry_after(s, e.class) end
    if e.out then return 503, wake_time(s, e.now) end
    if e.lost then
      e.lost = nil
      insert(s, e)
    end
    e.due = e.now + longest_pause
    rates(s, e.now)
  end
end

local function pass(txn) txn:set_var("txn.passed", 1) end

local function admit(txn)
  local s = services[txn:get_var("txn.svc")]
  if not s then return pass(txn) end
  local now = clock()
  prune(s, now)
  rates(s, now)
  local class = tonumber(txn:get_var("txn.prio")) or 2
  local team = txn:get_var("txn.team") or "-"
  local cost = cost_of(s, txn, class)
  s.seq = s.seq + 1
  -- Handed over by a worker before this one: it waits since then.
  local came = tonumber(txn:get_var("txn.came"))
  came = came and math.min(now, came / 1e6) or now
  local e = {class = class, team = team, cost = cost, came = came, now = now, seq = s.seq,
             due = now + longest_pause}
  local key
  e.tag, key = tag_for(s, team, class, cost)
  local up = txn.f:nbsrv(s.name) > 0
  if not up and s.hold == 0 then return pass(txn) end
  local limit = up and s["limit" .. class] - txn.f:queue(s.name) or s.hold
  if not find_place(s, e, limit) then
    if up then return refuse(s, txn, e, 429, retry_after(s, class)) end
    return refuse(s, txn, e, 503, wake_time(s, now))
  end
  if up then
    local _, ahead = ahead_of(s, e)
    local wait = expected(s, class, ahead)
    if wait and wait > s.wait then
      clear_below(s, class)
      return refuse(s, txn, e, 429, retry_after(s, class))
    end
  end
  s.tags[key] = e.tag
  insert(s, e)
  publish(s, txn)
  local status, wait = wait_in_list(s, txn, e)
  remove(s, e)
  if status then return refuse(s, txn, e, status, wait) end
  s.virtual[class] = math.max(s.virtual[class], e.tag - cost)
  s.taken[class] = s.taken[class] + cost
  s.passed = s.passed + 1
  s.passed_cost = s.passed_cost + cost
  txn:set_var("txn.held", math.floor((e.now - e.came) * 1e6))
  publish(s, txn)
  pass(txn)
end

core.register_action("neap_admit", {"http-req"}, admit)

-- neap set SERVICE KEY VALUE KEY VALUE ...
core.register_cli({"neap", "set"}, "neap set SERVICE KEY VALUE", function(applet, _, _, name, ...)
  local s = services[name]
  if not s then return applet:send("no such service\n") end
  local words = {...}
  for i = 1, #words - 1, 2 do
    local value = tonumber(words[i + 1])
    if not value or type(s[words[i]]) ~= "number" then
      return applet:send("no such figure: " .. tostring(words[i]) .. "\n")
    end
    s[words[i]] = value
  end
  applet:send("\n")
end)

core.register_cli({"neap", "show"}, "neap show", function(applet)
  local now = clock()
  for name, s in pairs(services) do
    prune(s, now)
    local waiting = {0, 0, 0}
    for _, e in ipairs(s.list) do waiting[e.class] = waiting[e.class] + 1 end
    applet:send(string.format("%s %d %d %d %d %d %d %d %.3f\n", name, waiting[1], waiting[2],
                              waiting[3], s.shed[1], s.shed[2], s.shed[3], s.passed, s.passed_cost))
  end
end)
)lua";

std::string decimal(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

double in_seconds(Micros length) { return static_cast<double>(length.value) / 1e6; }

struct Figure {
  std::string name;
  std::string value;
};

std::vector<Figure> figures_of(const AdmissionFigures& figures) {
  std::vector<Figure> out{{"mu", decimal(figures.cost_per_second)},
                          {"per_second", decimal(figures.requests_per_second)},
                          {"wait", decimal(in_seconds(figures.longest_wait))}};
  if (figures.wake > Micros(0)) out.push_back({"wake", decimal(in_seconds(figures.wake))});
  for (std::size_t i = 0; i < class_count; ++i) {
    if (figures.output_tokens[i] == 0) continue;
    out.push_back({"output" + std::to_string(i + 1), std::to_string(figures.output_tokens[i])});
  }
  return out;
}

}  // namespace

std::string waiting_variable(std::size_t place) { return "proc.w" + std::to_string(place); }

std::string render_admission(const std::vector<Endpoint>& endpoints,
                             const std::map<std::string, AdmissionFigures>& figures) {
  std::string out = "-- Written by neap, overwritten at every change.";
  out += lua_program;
  for (std::size_t place = 0; place < endpoints.size(); ++place) {
    const Endpoint& e = endpoints[place];
    const Admission& a = e.admission;
    out += "neap_service(\"" + e.service + "\", {variable = \"" + waiting_variable(place) + "\"";
    for (std::size_t i = 0; i < class_count; ++i) {
      out += ", limit" + std::to_string(i + 1) + " = " + std::to_string(a.queue[i]);
      out += ", output" + std::to_string(i + 1) + " = " + std::to_string(a.output_tokens);
    }
    out += ", hold = " + std::to_string(a.hold) + ", wake = 0";
    out += ", hold_for = " + decimal(in_seconds(a.hold_for));
    out += ", input = " + std::to_string(a.input_cost);
    out += ", output = " + std::to_string(a.output_cost) + "})\n";
    AdmissionFigures one{.longest_wait = e.queue_timeout};
    if (const auto known = figures.find(e.service); known != figures.end()) one = known->second;
    for (const Figure& figure : figures_of(one)) {
      out += "neap_figure(\"" + e.service + "\", \"" + figure.name + "\", " + figure.value + ")\n";
    }
  }
  return out;
}

std::string set_figures_command(const std::string& service, const AdmissionFigures& figures) {
  std::string line = "neap set " + service;
  for (const Figure& figure : figures_of(figures)) line += " " + figure.name + " " + figure.value;
  return line;
}

Result<std::map<std::string, AdmissionCounts>> read_counts(std::string_view answer) {
  std::map<std::string, AdmissionCounts> out;
  std::istringstream lines{std::string(answer)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    std::istringstream fields(line);
    std::string service;
    AdmissionCounts one;
    fields >> service;
    for (std::int64_t& n : one.waiting) fields >> n;
    for (std::uint64_t& n : one.shed) fields >> n;
    if (!(fields >> one.passed >> one.passed_cost)) {
      return fail(ErrorCode::internal, "the proxy's admission tells '" + line.substr(0, 100) + "'");
    }
    out[service] = one;
  }
  return out;
}

}  // namespace neap::gateway
