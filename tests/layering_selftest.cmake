# Plants one violation a rule in a small tree under WORK: each must be reported by LAYERING, and
# nothing else.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/lib/include/lipsa/linalg/spectral_norm.hpp "#pragma once\n#include <vector>\n")
file(WRITE ${WORK}/lib/include/lipsa/attention/probe.hpp "#include \"lipsa/linalg/spectral_norm.hpp\"\n")
file(WRITE ${WORK}/lib/include/lipsa/attention/plain.hpp "#include <Eigen/Core>\n")
file(WRITE ${WORK}/lib/src/attention/plain.cpp "#include \"lipsa/attention/plain.hpp\"\n#include <Spectra/SymEigsSolver.h>\n")
file(WRITE ${WORK}/lib/src/linalg/inner.hpp "#pragma once\n")
file(WRITE ${WORK}/lib/src/linalg/inner.cpp "#include \"linalg/inner.hpp\"\n")
file(WRITE ${WORK}/lib/include/lipsa/bounds/honest.hpp "#include \"lipsa/attention/plain.hpp\"\n")
file(WRITE ${WORK}/tests/attention/plain_test.cpp "")
file(WRITE ${WORK}/lib/CMakeLists.txt " include/lipsa/linalg/spectral_norm.hpp include/lipsa/attention/probe.hpp
  include/lipsa/attention/plain.hpp src/attention/plain.cpp src/linalg/inner.cpp include/lipsa/bounds/honest.hpp)")
file(WRITE ${WORK}/tests/CMakeLists.txt "(attention attention/plain_test.cpp)")

function(expect)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -P ${LAYERING}
    RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
  string(REGEX MATCHALL "[a-z/_]+\\.[ch]pp: [^\n]*" found "${said}")
  if(NOT found STREQUAL ARGN OR (NOT ARGN AND NOT status EQUAL 0))
    message(SEND_ERROR "expected: ${ARGN}\nfound: ${found}\nstatus ${status}: ${said}")
  endif()
endfunction()

function(plant file content) # and what is to be said of it
  if(EXISTS ${WORK}/${file})
    file(READ ${WORK}/${file} before)
  endif()
  file(WRITE ${WORK}/${file} "${content}")
  expect(${ARGN})
  if(DEFINED before)
    file(WRITE ${WORK}/${file} "${before}")
  else()
    file(REMOVE ${WORK}/${file})
  endif()
endfunction()

expect() # a tree without fault
plant(lib/include/lipsa/linalg/spectral_norm.hpp "#include \"lipsa/attention/plain.hpp\"\n"
  "include/lipsa/linalg/spectral_norm.hpp: 'linalg' may not include 'attention'")
plant(lib/src/linalg/inner.hpp "#  include <lipsa/bounds/honest.hpp>\n"
  "src/linalg/inner.hpp: 'linalg' may not include 'bounds'")
plant(lib/include/lipsa/bounds/honest.hpp "#include \"lipsa/linalg/spectral_norm.hpp\"\n"
  "include/lipsa/bounds/honest.hpp: 'bounds' may not reach linalg/spectral_norm.hpp")
plant(lib/include/lipsa/bounds/honest.hpp "#include \"lipsa/attention/probe.hpp\"\n"
  "include/lipsa/bounds/honest.hpp: 'bounds' may not reach linalg/spectral_norm.hpp")
foreach(private Spectra/SymEigsSolver.h boost/math/constants/constants.hpp fmt/format.h zip.h cblas.h
        tbb/tbb.h oneapi/tbb/parallel_for.h Random123/philox.h nlohmann/json.hpp linalg/inner.hpp)
  plant(lib/include/lipsa/attention/plain.hpp "#include <${private}>\n"
    "include/lipsa/attention/plain.hpp: a public header may not include ${private}")
endforeach()
plant(lib/include/lipsa/attention/plain.hpp "/// \\test tests/attention/gone_test.cpp\n"
  "include/lipsa/attention/plain.hpp: names tests/attention/gone_test.cpp, which is not there")
plant(lib/src/misc/tool.hpp "" "src/misc/tool.hpp: lies on no floor")
plant(lib/src/linalg/orphan.cpp ""
  "src/linalg/orphan.cpp: has no header of its path" "src/linalg/orphan.cpp: is not in lib/CMakeLists.txt")
plant(tests/linalg/stray_test.cpp ""
  "tests/linalg/stray_test.cpp: is not in tests/CMakeLists.txt" "tests/linalg/stray_test.cpp: lib has no header of its path")
