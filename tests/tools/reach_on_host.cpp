// tools/reach.cu on a made-up GPU, as a program for tests; or its host code, by the first argument:
//   fit LINK_S       the fit of the curve on stdin, lines of bytes and seconds
//   free ROOT        bytes that may be allocated by the files under ROOT
//   order PLACES STRIDE ROW LINES FIRST   the offsets of a launch's reads
#include <iostream>

#include "reach.cu"

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "fit") {
    std::vector<Point> curve;
    for (Point point{}; std::cin >> point.pool >> point.seconds;) {
      curve.push_back(point);
    }
    const Fit fit = fit_curve(curve, std::atof(argv[2]));
    std::printf("%.9g %.9g %.9g %.9g\n", fit.reach, fit.walk, fit.doubling, fit.error);
  } else if (what == "free") {
    std::printf("%lld\n", static_cast<long long>(allocatable_bytes(argv[2])));
  } else if (what == "order") {
    Walk walk{};
    uint64_t* numbers[] = {&walk.places, &walk.stride, &walk.row, &walk.lines, &walk.first};
    for (int i = 0; i < 5; ++i) {
      *numbers[i] = std::strtoull(argv[i + 2], nullptr, 10);
    }
    for (uint64_t read = 0; read < kRows; ++read) {
      std::printf("%llu\n", static_cast<unsigned long long>(offset_of(walk, read)));
    }
  } else {
    reach(argc, argv);
  }
}
