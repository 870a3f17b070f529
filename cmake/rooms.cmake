# SPDX-License-Identifier: Apache-2.0
# tw_room(NAME [ROOM...] [LIBRARIES LIB...]): all C and assembly files of a folder as one static library
# tw_NAME, which sees the headers of the rooms below through the project's root.
function(tw_room name)
  cmake_parse_arguments(ROOM "" "" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c ${CMAKE_SOURCE_DIR}/${name}/*.S)
  if(NOT sources)
    return()
  endif()
  add_library(tw_${name} STATIC ${sources})
  target_include_directories(tw_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  # Thread-local words are read on every hit: no call into the loader for them.
  target_compile_options(tw_${name} PRIVATE -ftls-model=initial-exec)
  foreach(below ${ROOM_UNPARSED_ARGUMENTS})
    if(TARGET tw_${below})
      target_link_libraries(tw_${name} PUBLIC tw_${below})
    endif()
  endforeach()
  target_link_libraries(tw_${name} PUBLIC ${ROOM_LIBRARIES})
endfunction()
