# Asks Coq what the compiled theory rests on. Fails when
#   - a lemma or theorem uses an axiom beyond the four of Coq's real numbers, or a proof that was not
#     finished;
#   - coqchk, which checks the compiled proofs once more on its own, finds in the theory anything that
#     is assumed, used or not;
#   - PAGE names, as `File.theorem`, what is no lemma or theorem, or what RESTATED does not state again
#     in full;
#   - a file of the theory assumes, hides or renames: what a statement says must be what it looks like.
#
#   cmake -DCOQC= -DCOQCHK= -DOUT=<folder of the .vo files> -DTHEORY=<names> -DFOLDER=<of the .v files>
#         -DPAGE=<text> -DRESTATED=<.v file> [-DCOMPUTED=<names>] -P audit.cmake
#
# COMPUTED: files whose proofs are long computations, which coqchk does not finish in ten minutes.
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

set(statement "(Theorem|Corollary|Lemma|Proposition|Fact|Remark) ")
set(theorems "")
foreach(name IN LISTS THEORY)
  file(READ ${FOLDER}/${name}.v text)
  string(REGEX REPLACE "\n#\\[(global|export)\\] Hint " "\nHint " text "${text}")
  string(REGEX REPLACE "\nModule [A-Za-z]+ := [A-Za-z0-9 ]+\\." "" text "${text}")  # names, nothing inside
  foreach(strange
      "\n[ \t]*((Module|Declare|Include|Axiom|Parameter|Conjecture|Unset|Set|Infix|Reserved|Load|Program|Canonical|Primitive)[^\n]*)"
      "\n[ \t]*(#[^\n]*)" "\n[ \t]+(${statement}[A-Za-z_][^\n]*)"
      "\n[ \t]*(((Local|Global) )?Notation \"[^\n]*)")
    if(text MATCHES "${strange}")
      message(FATAL_ERROR "${name}.v: not in this theory: ${CMAKE_MATCH_1}")
    endif()
  endforeach()
  string(REGEX REPLACE "\nOpen Scope R_scope\\." "" scopes "${text}")
  if(scopes MATCHES "(Open|Delimit|Bind|Undelimit|Close) Scope[^\n]*")
    message(FATAL_ERROR "${name}.v: not in this theory: ${CMAKE_MATCH_0}")
  endif()
  string(REGEX MATCHALL "\n${statement}[A-Za-z0-9_']+" heads "${text}")
  list(TRANSFORM heads REPLACE "^.* " "${name}.")
  list(APPEND theorems ${heads})
endforeach()
list(LENGTH theorems count)
if(count EQUAL 0)
  message(FATAL_ERROR "no theorem in ${THEORY}")
endif()
# Asked for together, as each question takes a walk through all of Coq's reals.
list(JOIN THEORY " " modules)
list(JOIN theorems ",\n  " together)
file(WRITE ${OUT}/Assumptions.v "From Lipsa Require ${modules}.
Definition theorems := (\n  ${together}).\nPrint Assumptions theorems.\n")
run(said ${COQC} -q -R . Lipsa -w -ambiguous-paths Assumptions.v)
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
set(theory ${THEORY})
list(REMOVE_ITEM theory ${COMPUTED})
foreach(name IN LISTS theory)
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
string(REGEX MATCHALL "`[A-Z][A-Za-z0-9]*\\.[A-Za-z0-9_']+`" named "${page}")
string(REPLACE "`" "" named "${named}")
list(FILTER named EXCLUDE REGEX "\\.(v|md|cmake)$")
list(REMOVE_DUPLICATES named)
file(READ ${RESTATED} restated)
foreach(theorem IN LISTS named)
  string(FIND "${restated}" "\nCheck (${theorem} :" at)
  if(NOT theorem IN_LIST theorems)
    message(FATAL_ERROR "no lemma or theorem: ${theorem}\n ${PAGE}")
  elseif(at EQUAL -1)
    message(FATAL_ERROR "not restated: ${theorem}\n ${RESTATED}")
  endif()
endforeach()
configure_file(${RESTATED} ${OUT}/Restated.v COPYONLY)
run(said ${COQC} -q -R . Lipsa -w -ambiguous-paths Restated.v)

list(LENGTH named names)
message(STATUS "${count} lemmas and theorems rest on Coq's real numbers alone; all ${names} of the page stand there")
