# SPDX-License-Identifier: Apache-2.0
# The installed shared libraries. They are made of rooms and export only symbols marked TW_API.

# tw_library(TARGET LIBRARIES LIB... ROOMS ROOM...): a shared library made of whole rooms.
function(tw_library target)
  cmake_parse_arguments(PART "" "" "LIBRARIES;ROOMS" ${ARGN})
  add_library(${target} SHARED ${CMAKE_SOURCE_DIR}/cmake/empty.c)
  set(archives)
  foreach(room ${PART_ROOMS})
    if(TARGET tw_${room})
      list(APPEND archives $<TARGET_FILE:tw_${room}>)
      add_dependencies(${target} tw_${room})
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:tw_${room}>)
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive ${PART_LIBRARIES})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Bound at load: no hook may enter the loader. Never unloaded: threads have destructors in it.
  target_link_options(${target} PRIVATE -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete
                      -Wl,-Bsymbolic-functions -Wl,--exclude-libs,libck.a)
  # With clang, a sanitizer's run time is in the executable only.
  if(NOT TW_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# tw_public_library(TARGET ...): a library that programs link. cmake/TARGET.map lists its exports, with the version of
# each. The number of the SONAME changes when an export is removed or changed.
function(tw_public_library target)
  tw_library(${target} ${ARGN})
  set(map ${CMAKE_SOURCE_DIR}/cmake/${target}.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  set_target_properties(${target} PROPERTIES SOVERSION 0 VERSION ${PROJECT_VERSION})
endfunction()

# In every traced program: from a call to a ring.
tw_public_library(tracewheel LIBRARIES libck.a gmp m pthread dl
           ROOMS session pipeline message catalog breakpoints symbols match ringbuf progress term base)
# Preloaded into unprepared programs. It contains the rooms itself, and its exports take precedence over libtracewheel's
# in programs that have both. Without a run path: ld.so would search it whenever the program calls dlopen, which passes
# through here. libm only if the compiler calls a function that libc lacks.
tw_library(tracewheel-agent LIBRARIES libck.a gmp -Wl,--as-needed c m -Wl,--no-as-needed pthread dl
           ROOMS agent session pipeline message catalog breakpoints symbols match ringbuf progress term base)
target_sources(tracewheel-agent PRIVATE ${CMAKE_SOURCE_DIR}/agent/preload/preload.c
               ${CMAKE_SOURCE_DIR}/agent/preload/confine.c agent/preload/fork.c ${CMAKE_SOURCE_DIR}/agent/preload/children.c ${CMAKE_SOURCE_DIR}/agent/preload/name.c ${CMAKE_SOURCE_DIR}/agent/preload/signal_stack.c
               ${CMAKE_SOURCE_DIR}/agent/preload/jump.c ${CMAKE_SOURCE_DIR}/agent/preload/frames.c ${CMAKE_SOURCE_DIR}/agent/preload/fault.c ${CMAKE_SOURCE_DIR}/agent/preload/crash.c
               ${CMAKE_SOURCE_DIR}/agent/preload/bind.c ${CMAKE_SOURCE_DIR}/agent/preload/exec.c ${CMAKE_SOURCE_DIR}/agent/preload/lock.c ${CMAKE_SOURCE_DIR}/agent/preload/libc.c)
target_include_directories(tracewheel-agent PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
set_target_properties(tracewheel-agent PROPERTIES SKIP_BUILD_RPATH ON)
# In the command, and in programs that write captures themselves: from rings to disk and back.
tw_public_library(tracewheel-capture LIBRARIES libck.a lz4 gmp m pthread ROOMS capture catalog ringbuf term base)
# It exports no terms, which are libtracewheel's: two tables of atoms would not know each other's. For programs that
# want arguments and lines: no traced program links it.
tw_public_library(tracewheel-debug LIBRARIES libck.a dw elf pthread ROOMS debug base)
