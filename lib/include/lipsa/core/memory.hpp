/// \file
/// What the process does with memory that large arrays free.
#pragma once

namespace lipsa {

/// Freed memory stays with the process. By default large arrays are given back to the system and
/// come anew as pages of zeros, which costs a program that makes and drops the same hundreds of
/// megabytes at each step, as training does, as much time again as its arithmetic. For main(), of
/// programs that train; a library cannot know.
///
/// \return  whether the allocator obliges: glibc's does
/// \test    tests/core/memory_test.cpp
bool keep_freed_memory();

}  // namespace lipsa
