# Fails when the folders of ROOT break a rule of the layout, naming every file that does.
#
#   cmake -DROOT=... -P tests/layering.cmake
cmake_minimum_required(VERSION 3.25)

# A file includes its own module and those on lower floors, never up, never sideways.
set(floor_core 0)
set(floor_linalg 1)
set(floor_attention 2)
set(floor_model 3)
set(floor_bounds 4)
set(floor_invert 5)
set(floor_search 5)
set(floor_train 5)
set(floor_experiment 6)

# Tests of one contract that several headers keep; every other test has the name of its header.
set(spanning_tests attention/reference attention/scores bounds/not_lipschitz bounds/point_bounds)

function(violation text)
  set_property(GLOBAL APPEND_STRING PROPERTY violations "  ${text}\n")
endfunction()

# The paths that a file includes.
function(includes_of file result)
  file(STRINGS ${file} lines REGEX "^[ \t]*#[ \t]*include")
  list(TRANSFORM lines REPLACE "^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+).*" "\\1")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

# The file of lib/ that an include means, relative to lib/; empty for one of another library.
function(resolve include result)
  set(${result} "" PARENT_SCOPE)
  foreach(folder include src)
    if(EXISTS "${ROOT}/lib/${folder}/${include}")
      set(${result} "${folder}/${include}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Whether a file of lib/ reaches linalg/spectral_norm.hpp, through any number of headers.
function(reaches_estimate file seen result)
  set(${result} FALSE PARENT_SCOPE)
  if(file STREQUAL "include/lipsa/linalg/spectral_norm.hpp")
    set(${result} TRUE PARENT_SCOPE)
  elseif(NOT file IN_LIST seen)
    includes_of(${ROOT}/lib/${file} includes)
    foreach(include IN LISTS includes)
      resolve(${include} next)
      if(next)
        reaches_estimate(${next} "${seen};${file}" found)
        if(found)
          set(${result} TRUE PARENT_SCOPE)
          return()
        endif()
      endif()
    endforeach()
  endif()
endfunction()

file(READ ${ROOT}/lib/CMakeLists.txt lib_list)
file(READ ${ROOT}/tests/CMakeLists.txt tests_list)

file(GLOB_RECURSE files RELATIVE ${ROOT}/lib
  ${ROOT}/lib/include/*.hpp ${ROOT}/lib/src/*.hpp ${ROOT}/lib/src/*.cpp)
foreach(file IN LISTS files)
  string(REGEX REPLACE "^(include/lipsa|src)/(.*)\\.[ch]pp$" "\\2" path ${file})
  string(REGEX REPLACE "/.*" "" from ${path})
  if(NOT DEFINED floor_${from})
    violation("${file}: lies on no floor")
    continue()
  endif()
  includes_of(${ROOT}/lib/${file} includes)

  foreach(include IN LISTS includes)
    resolve(${include} target)
    if(target MATCHES "^(include/lipsa|src)/([a-z]+)/")
      set(to ${CMAKE_MATCH_2})
      if(NOT to STREQUAL from AND NOT floor_${to} LESS floor_${from})
        violation("${file}: '${from}' may not include '${to}'")
      endif()
    endif()
    # Users need nothing but Eigen and the standard library to read a public header.
    if(file MATCHES "^include/" AND NOT include MATCHES "^(lipsa/.*|Eigen/.*|[a-z_]+)$")
      violation("${file}: a public header may not include ${include}")
    endif()
  endforeach()

  # An upper bound may not rest on a norm approached from below.
  if(from STREQUAL bounds)
    reaches_estimate(${file} "" found)
    if(found)
      violation("${file}: 'bounds' may not reach linalg/spectral_norm.hpp")
    endif()
  endif()

  # Files of bounds/entries are found by lib/CMakeLists.txt and declared by bounds/entries.hpp.
  if(path MATCHES "^bounds/entries/")
    continue()
  endif()
  if(file MATCHES "\\.cpp$" AND NOT EXISTS ${ROOT}/lib/include/lipsa/${path}.hpp AND NOT EXISTS ${ROOT}/lib/src/${path}.hpp)
    violation("${file}: has no header of its path")
  endif()
  if(NOT file MATCHES "^src/.*\\.hpp$" AND NOT lib_list MATCHES "[ \n]${file}[ \n)]")
    violation("${file}: is not in lib/CMakeLists.txt")
  endif()

  file(STRINGS ${ROOT}/lib/${file} named REGEX "^///.* tests/[a-z0-9_/]+\\.cpp")
  foreach(line IN LISTS named)
    string(REGEX MATCH "tests/[a-z0-9_/]+\\.cpp" test "${line}")
    if(NOT EXISTS ${ROOT}/${test})
      violation("${file}: names ${test}, which is not there")
    endif()
  endforeach()
endforeach()

file(GLOB tests RELATIVE ${ROOT}/tests ${ROOT}/tests/*/*_test.cpp)
foreach(test IN LISTS tests)
  if(NOT tests_list MATCHES "[ \n(]${test}[ \n)]")
    violation("tests/${test}: is not in tests/CMakeLists.txt")
  endif()
  string(REGEX MATCH "^[a-z_]+" module ${test})
  string(REGEX REPLACE "_test\\.cpp$" "" path ${test})
  if(DEFINED floor_${module} AND NOT path IN_LIST spanning_tests
     AND NOT EXISTS ${ROOT}/lib/include/lipsa/${path}.hpp AND NOT EXISTS ${ROOT}/lib/src/${path}.hpp)
    violation("tests/${test}: lib has no header of its path")
  endif()
endforeach()

get_property(violations GLOBAL PROPERTY violations)
if(violations)
  message(FATAL_ERROR "layering:\n${violations}")
endif()
