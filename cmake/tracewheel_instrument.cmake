# SPDX-License-Identifier: Apache-2.0
# tracewheel_instrument(TARGET...): every function of these targets gets an entry sled, so that Tracewheel can show every
# call of it. Costs nine bytes of NOPs a function; docs/instrumenting.md says what happens to them.
function(tracewheel_instrument)
  foreach(target ${ARGN})
    foreach(language C CXX)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:${language}>:-fpatchable-function-entry=9>)
    endforeach()
  endforeach()
endfunction()
