// The work of streams: how much each was given, how much of it is done, and what it waits for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

class StreamWork {
 public:
  using Id = uint64_t;  // of a stream: unlike its handle, never given twice
  // The end of the work that each of these streams had at some time.
  using Point = std::map<Id, uint64_t>;

  // The default stream waits for those that are blocking.
  void add(Id id, bool is_blocking) { streams_[id].is_blocking = is_blocking; }
  bool is_blocking(Id id) const { return streams_.at(id).is_blocking; }

  void give(Id id) { ++streams_.at(id).given; }

  // A piece of work that is done when the point is reached.
  void give_wait(Id id, const Point& point) {
    Work& work = streams_.at(id);
    work.gates.emplace(++work.given, point);
  }

  // Pieces so far.
  uint64_t given(Id id) const { return streams_.at(id).given; }
  bool is_idle(Id id) const { return streams_.at(id).done == streams_.at(id).given; }

  // Behind all of the stream's work, and for the default stream behind that of those it waits for.
  Point point_of(Id id) const {
    Point point{{id, given(id)}};
    if (id == 0) {
      for (const auto& [other, work] : streams_) {
        if (work.is_blocking) {
          point[other] = work.given;
        }
      }
    }
    return point;
  }

  bool is_reached(const Point& point) const {
    return std::all_of(point.begin(), point.end(), [&](const auto& part) {
      return streams_.at(part.first).done >= part.second;
    });
  }

  // Whether the point is reached before anything that the stream is given from now on begins.
  bool is_before(Id id, const Point& point) const {
    Point behind;
    add_behind(behind, id, given(id));
    return std::all_of(point.begin(), point.end(), [&](const auto& part) {
      return std::max(streams_.at(part.first).done, behind[part.first]) >= part.second;
    });
  }

  // The next `count` pieces are done, as far as they need not wait.
  void complete(Id id, uint64_t count) {
    Work& work = streams_.at(id);
    for (; count > 0 && work.done < work.given; --count) {
      const auto gate = work.gates.find(work.done + 1);
      if (gate != work.gates.end() && !is_reached(gate->second)) {
        return;
      }
      ++work.done;
    }
  }

  // All work up to the point is done, and what that waits for.
  void reach(const Point& point) {
    for (const auto& [id, position] : point) {
      Work& work = streams_.at(id);
      for (auto gate = work.gates.upper_bound(work.done);
           gate != work.gates.end() && gate->first <= position; ++gate) {
        reach(gate->second);
      }
      work.done = std::max(work.done, position);
    }
  }

  void finish_all() {
    for (auto& [id, work] : streams_) {
      work.done = work.given;
    }
  }

 private:
  struct Work {
    uint64_t given = 0;
    uint64_t done = 0;
    bool is_blocking = false;
    std::map<uint64_t, Point> gates;  // what pieces of it wait for
  };

  // Adds to a point what is done when that piece of the stream's work is.
  void add_behind(Point& point, Id id, uint64_t position) const {
    const Work& work = streams_.at(id);
    if (position <= std::max(point[id], work.done)) {
      return;
    }
    point[id] = position;
    for (auto gate = work.gates.upper_bound(work.done);
         gate != work.gates.end() && gate->first <= position; ++gate) {
      for (const auto& [other, end] : gate->second) {
        add_behind(point, other, end);
      }
    }
  }

  std::map<Id, Work> streams_;
};
