# Asks Coq what the compiled theory rests on. Fails when
#   - a theorem uses an axiom beyond the four of Coq's real numbers, or a proof that was not finished;
#   - coqchk, which checks the compiled proofs once more on its own, finds in the theory anything that
#     is assumed, used or not;
#   - PAGE names a theorem, as `File.theorem`, that Coq does not know.
#
#   cmake -DCOQC= -DCOQCHK= -DOUT=<folder of the .vo files> -DTHEORY=<names> -DFOLDER=<of the .v files>
#         -DPAGE=<text> -P audit.cmake
cmake_minimum_required(VERSION 3.25)

set(allowed ClassicalDedekindReals.sig_not_dec ClassicalDedekindReals.sig_forall_dec
  FunctionalExtensionality.functional_extensionality_dep Classical_Prop.classic)

# run(RESULT command...): all it says, coqchk on stderr; a failure is the audit's.
function(run result)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${OUT}
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${said}")
  endif()
  set(${result} "${said}" PARENT_SCOPE)
endfunction()

# ask(RESULT text): what Coq says to these sentences about the theory.
function(ask result text)
  list(JOIN THEORY " " modules)
  file(WRITE ${OUT}/Audit.v "From Lipsa Require ${modules}.\n${text}")
  run(said ${COQC} -q -R . Lipsa -w -ambiguous-paths Audit.v)
  set(${result} "${said}" PARENT_SCOPE)
endfunction()

# Every theorem of every file is asked for, so that none can be forgotten.
set(theorems "")
foreach(name IN LISTS THEORY)
  file(STRINGS ${FOLDER}/${name}.v lines REGEX "^(Theorem|Corollary) ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[A-Za-z]+ ([A-Za-z0-9_']+).*" "${name}.\\1" theorem "${line}")
    list(APPEND theorems ${theorem})
  endforeach()
endforeach()
list(LENGTH theorems count)
if(count EQUAL 0)
  message(FATAL_ERROR "no theorem in ${THEORY}")
endif()
# Asked for together, as each question takes a walk through all of Coq's reals.
list(JOIN theorems ",\n  " together)
ask(said "Definition theorems := (\n  ${together}).\nPrint Assumptions theorems.\n")
if(NOT said MATCHES "^(Axioms:|Closed under the global context)")
  message(FATAL_ERROR "no report of what the theorems rest on:\n${said}")
endif()
# What they rest on stands at the start of a line, its type after it or further in.
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_.']*" axioms "${said}")
list(TRANSFORM axioms STRIP)
list(REMOVE_DUPLICATES axioms)
list(REMOVE_ITEM axioms Axioms Closed ${allowed})
if(axioms)
  message(FATAL_ERROR "not proved: ${axioms}\n${said}")
endif()

set(modules "")
foreach(name IN LISTS THEORY)
  list(APPEND modules -norec Lipsa.${name})
endforeach()
run(said ${COQCHK} -silent -o -R . Lipsa ${modules})
string(REGEX MATCHALL "\n +Lipsa\\.[A-Za-z0-9_.']+" assumed "${said}")
string(REGEX MATCHALL "(type-in-type|unsafe \\(co\\)fixpoints|positivity is assumed): <none>" sound "${said}")
list(LENGTH sound kinds)
if(assumed OR NOT kinds EQUAL 3)
  message(FATAL_ERROR "assumed, not proved:\n${said}")
endif()

file(READ ${PAGE} page)
string(REGEX MATCHALL "`[A-Z][A-Za-z]*\\.[a-z0-9_]+`" named "${page}")
string(REPLACE "`" "" named "${named}")
list(FILTER named EXCLUDE REGEX "\\.(v|md|cmake)$")
list(REMOVE_DUPLICATES named)
list(JOIN named ".\nCheck " checks)
if(named)
  ask(said "Check ${checks}.\n")
endif()

list(LENGTH named names)
message(STATUS "${count} theorems rest on Coq's real numbers alone; the page names ${names}, all known")
