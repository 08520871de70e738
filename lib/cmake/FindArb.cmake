# Ball arithmetic: Arb, part of FLINT from version 3 on, a library of its own before. Defines
# Arb::Arb. Installed with the package, whose static library needs it to link.
include(FindPackageHandleStandardArgs)
find_path(Arb_INCLUDE_DIR arb.h PATH_SUFFIXES flint)
find_library(Arb_LIBRARY NAMES flint-arb arb flint)
find_library(Arb_FLINT_LIBRARY flint)
find_library(Arb_GMP_LIBRARY gmp)
mark_as_advanced(Arb_INCLUDE_DIR Arb_LIBRARY Arb_FLINT_LIBRARY Arb_GMP_LIBRARY)
find_package_handle_standard_args(Arb
  REQUIRED_VARS Arb_LIBRARY Arb_FLINT_LIBRARY Arb_GMP_LIBRARY Arb_INCLUDE_DIR)
if(Arb_FOUND AND NOT TARGET Arb::Arb)
  add_library(Arb::Arb INTERFACE IMPORTED)
  target_include_directories(Arb::Arb INTERFACE ${Arb_INCLUDE_DIR})
  target_link_libraries(Arb::Arb INTERFACE ${Arb_LIBRARY} ${Arb_FLINT_LIBRARY} ${Arb_GMP_LIBRARY})
endif()
