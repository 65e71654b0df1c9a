#include "simulator/solvers/bounds/recompute_cut.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tidepool {
namespace {

/// A millionth of the bound: more than the rounding error, and too little to matter.
double tolerance(double bound) { return std::max(0.5, bound * 1e-6); }

/// Far more flows than needed. The bound holds after any number.
constexpr int kMostFlows = 64;

}  // namespace

RecomputeCut::RecomputeCut(const RecomputeModel& model, std::int32_t instant, std::optional<std::int32_t> until)
    : model_{model},
      instant_{instant},
      index_(model.items().size(), kNone),
      op_index_(static_cast<std::size_t>(model.ops()), kNone) {
  gather(until.value_or(model.ops()));
  shift_ = std::clamp(58 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(all_cost_))), 0, 24);
  flow_ = network(std::int64_t{1} << shift_, price_edges_);
  start_ = resumed_ = flow_.save();
}

/// Finds the versions needed after the instant and up to `until`, and the ops and versions that they depend on.
void RecomputeCut::gather(std::int32_t until) {
  const std::span items = model_.items();
  std::vector<bool> held(items.size());
  for (const VersionId v : model_.held(instant_)) held[v.index()] = true;
  const auto add = [&](VersionId v, bool needed) {
    if (held[v.index()] || items[v.index()].made == RecomputeModel::kNever || index_[v.index()] != kNone) return;
    index_[v.index()] = static_cast<std::uint32_t>(versions_.size());
    versions_.push_back({v, kNone});
    needed_.push_back(needed);
  };
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].made <= instant_ && items[i].needed > instant_ &&
        (until == model_.ops() || model_.next_need(VersionId{i}, instant_) <= until))
      add(VersionId{i}, true);
  for (const Node& node : versions_) needed_bytes_ += items[node.version.index()].bytes;
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    const RecomputeModel::Item& item = items[versions_[i].version.index()];
    all_bytes_ += item.bytes;
    if (!item.replaceable) {
      lasting_bytes_ += item.bytes;
      continue;
    }
    const OpId op{static_cast<std::uint32_t>(item.made)};
    if (op_index_[op.index()] == kNone) {
      op_index_[op.index()] = static_cast<std::uint32_t>(ops_.size());
      ops_.push_back(op);
      costs_.push_back(model_.cost(op));
      all_cost_ += costs_.back();
      for (const VersionId input : model_.inputs(op)) add(input, false);
    }
    versions_[i].op = op_index_[op.index()];
  }
}

/// The network at price 0. `price_edges` receives, by version, the edges whose capacity is the version's price.
/// @param scale  factor of the ops' costs
MaxFlow RecomputeCut::network(std::int64_t scale, std::vector<MaxFlow::Edge>& price_edges) const {
  MaxFlow flow{2 + versions_.size() + ops_.size()};
  for (std::uint32_t i = 0; i < ops_.size(); ++i) {
    flow.add_edge(MaxFlow::kSource, op_node(i), costs_[i] * scale);
    for (const VersionId input : model_.inputs(ops_[i]))
      if (index_[input.index()] != kNone)
        flow.add_edge(version_node(index_[input.index()]), op_node(i), MaxFlow::kUnlimited);
  }
  for (std::uint32_t i = 0; i < versions_.size(); ++i) {
    const std::uint32_t op = versions_[i].op;
    price_edges.push_back(flow.add_edge(op == kNone ? MaxFlow::kSource : op_node(op), version_node(i), 0));
    if (needed_[i]) flow.add_edge(version_node(i), MaxFlow::kSink, MaxFlow::kUnlimited);
  }
  flow.run();
  return flow;
}

/// The cheapest cut at a scaled price.
RecomputeCut::Cut RecomputeCut::solve(std::int64_t price) {
  if (price < price_) {
    const bool near = resumed_price_ <= price;
    flow_.restore(near ? resumed_ : start_);
    price_ = near ? resumed_price_ : 0;
  }
  for (std::size_t i = 0; i < versions_.size(); ++i)
    flow_.widen(price_edges_[i], model_.item(versions_[i].version).bytes * (price - price_));
  price_ = price;
  Cut cut;
  cut.value = flow_.run();
  for (std::uint32_t i = 0; i < ops_.size(); ++i)
    if (flow_.with_sink(op_node(i))) cut.point.cost += costs_[i];
  for (std::uint32_t i = 0; i < versions_.size(); ++i)
    if (stays(flow_, i)) cut.point.bytes += model_.item(versions_[i].version).bytes;
  return cut;
}

/// Whether a cut keeps a version.
bool RecomputeCut::stays(const MaxFlow& flow, std::uint32_t i) const {
  const std::uint32_t op = versions_[i].op;
  return flow.with_sink(version_node(i)) && (op == kNone || !flow.with_sink(op_node(op)));
}

/// A flow in which ops cost nothing and each version its bytes.
MaxFlow RecomputeCut::flow_of_bytes() const {
  std::vector<MaxFlow::Edge> price_edges;
  MaxFlow flow = network(0, price_edges);
  for (std::uint32_t i = 0; i < versions_.size(); ++i)
    flow.widen(price_edges[i], model_.item(versions_[i].version).bytes);
  return flow;
}

std::int64_t RecomputeCut::least_bytes() const { return flow_of_bytes().run(); }

std::vector<RecomputeCut::Content> RecomputeCut::contents() const {
  std::vector<Content> contents;
  for (std::size_t i = 0; i < versions_.size(); ++i) contents.push_back({versions_[i].version, needed_[i]});
  return contents;
}

/// The choice that keeps the fewest bytes.
CutPoint RecomputeCut::fewest_bytes(std::int64_t room) {
  MaxFlow flow = flow_of_bytes();
  CutPoint point{0, flow.run()};
  if (point.bytes > room) return point;
  for (std::uint32_t i = 0; i < ops_.size(); ++i)
    if (flow.with_sink(op_node(i))) point.cost += costs_[i];
  note_choice(flow, point);
  return point;
}

void RecomputeCut::note_choice(const MaxFlow& flow, const CutPoint& point) {
  if (choice_.known && choice_.point.cost <= point.cost) return;
  choice_ = {true, point, {}, {}};
  for (std::uint32_t i = 0; i < ops_.size(); ++i)
    if (flow.with_sink(op_node(i))) choice_.again.push_back(ops_[i]);
  for (std::uint32_t i = 0; i < versions_.size(); ++i)
    if (stays(flow, i)) choice_.resident.push_back(versions_[i].version);
  std::sort(choice_.again.begin(), choice_.again.end());
  std::sort(choice_.resident.begin(), choice_.resident.end());
}

/// The choice that runs all ops again.
CutPoint RecomputeCut::run_all_again() {
  choice_ = {true, {all_cost_, lasting_bytes_}, {}, ops_};
  std::sort(choice_.again.begin(), choice_.again.end());
  for (const Node& node : versions_)
    if (node.op == kNone) choice_.resident.push_back(node.version);
  std::sort(choice_.resident.begin(), choice_.resident.end());
  return choice_.point;
}

RecomputeCut::Answer RecomputeCut::bound(std::int64_t room, double price, std::int64_t unless_over) {
  Answer answer;
  choice_ = {};
  if (needed_bytes_ <= room) return answer;
  CutPoint left{0, needed_bytes_};  // it keeps too much
  CutPoint right = lasting_bytes_ <= room ? run_all_again() : fewest_bytes(room);
  if (right.bytes > room) return {.feasible = false, .flows = 1};
  const std::int64_t highest = (std::int64_t{1} << 60) / std::max<std::int64_t>(1, all_bytes_);
  const double scale = std::ldexp(1.0, shift_);
  std::int64_t tried_left = 0, tried_right = highest + 1;
  while (tried_right - tried_left > 1 && answer.flows < kMostFlows) {
    // Between `left` and `right`, no price proves more than the one at which their lines meet.
    const double meet = static_cast<double>(right.cost - left.cost) / static_cast<double>(left.bytes - right.bytes);
    const double most = static_cast<double>(left.cost) + meet * static_cast<double>(left.bytes - room);
    const double best = static_cast<double>(std::max(answer.bound, unless_over));
    if (most <= best + tolerance(best)) break;
    const double wanted = (answer.flows == 0 && price > 0 ? price : meet) * scale;
    const std::int64_t at =
        std::clamp(static_cast<std::int64_t>(std::min(wanted, 1e18)), tried_left + 1, tried_right - 1);
    const Cut cut = solve(at);
    ++answer.flows;
    const Int128 proved = static_cast<Int128>(cut.value) - static_cast<Int128>(at) * room;
    const auto rounded_up = static_cast<std::int64_t>((proved + (Int128{1} << shift_) - 1) >> shift_);
    if (rounded_up > answer.bound) answer.bound = rounded_up, answer.price = static_cast<double>(at) / scale;
    if (cut.point.bytes > room) {
      left = cut.point, tried_left = at;
      resumed_ = flow_.save(), resumed_price_ = at;
    } else {
      right = cut.point, tried_right = at;
      note_choice(flow_, cut.point);
    }
  }
  return answer;
}

}  // namespace tidepool
