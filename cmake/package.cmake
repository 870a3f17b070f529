# SPDX-License-Identifier: Apache-2.0
# Debian packages of the installed components, by cpack: `./run package`.
option(TW_PACKAGE "install what Debian's packages need besides: copyright and changelog of each" OFF)
if(NOT TW_PACKAGE)
  return()
endif()
set(maintainer "Tracewheel's maintainers <maintainers@tracewheel.invalid>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(revision 1)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/debian/copyright.in ${CMAKE_BINARY_DIR}/debian/copyright)
configure_file(cmake/debian/shlibs.in ${CMAKE_BINARY_DIR}/debian/shlibs)
configure_file(cmake/debian/changelog.in ${CMAKE_BINARY_DIR}/debian/changelog.Debian)
execute_process(COMMAND gzip -9nf changelog.Debian WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/debian COMMAND_ERROR_IS_FATAL ANY)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tracewheel)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_COMPONENTS_ALL)

# tw_package(COMPONENT NAME SECTION SUMMARY TEXT COMPONENT-THAT-IT-NEEDS...): TEXT is what `apt show` says.
macro(tw_package component name section summary text)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENT_${upper}_DEPENDS ${ARGN})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON)
  install(FILES ${CMAKE_BINARY_DIR}/debian/copyright ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endmacro()

tw_package(command tracewheel devel "record every call of every function of a native program"
"Programs need no preparation and no debug information, and may run already.
Calls of all threads and processes, with arguments, results, times, callers
and errors, go into a compressed capture. From it come reports, call trees,
flame graphs, timelines, and files for other tools.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "python3-tracewheel, tracewheel-doc, tracewheel-erlang, tracewheel-fleet, tracewheel-sql")
install(CODE "
  file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/*.1\")
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND pages)
    execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()" COMPONENT command)
tw_package(library libtracewheel0 libs "trace a program from inside, read and write captures"
"The libraries of programs that trace themselves by sessions, breakpoints and
match specifications, and of programs that read or write captures.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/shlibs ${CMAKE_SOURCE_DIR}/cmake/debian/triggers)
tw_package(dev libtracewheel-dev libdevel "headers of libtracewheel, for pkg-config and CMake"
"What is needed to compile programs that trace themselves or read captures." library command)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libc6-dev")
if(TARGET tracewheel-sql)
  tw_package(sql tracewheel-sql devel "queries in SQL about captures of tracewheel"
"The command `tracewheel sql`, and `convert` to sqlite and csv." command)
endif()
if(TARGET tracewheel-ship)
  tw_package(fleet tracewheel-fleet devel "captures of tracewheel from many machines"
"The command `tracewheel ship`: closed segments and their summaries go to a
folder or to a bucket of an S3 object store while a program is recorded.
The command `tracewheel fleet` asks their summaries, or a ClickHouse server
that it has set up to load them." command)
endif()
if(TARGET tracewheel-python)
  tw_package(python python3-tracewheel python "captures of tracewheel in Python"
"Events and calls as iterators, as columns of numpy and as tables of pandas.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11)")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas, tracewheel-doc")
endif()
if(TARGET tracewheel-erlang)
  tw_package(erlang tracewheel-erlang devel "tracing of Erlang nodes by tracewheel"
"The application that `tracewheel record --erlang` gives to a node, and that
a node may use itself." library command)
  set(CPACK_DEBIAN_ERLANG_PACKAGE_SUGGESTS "erlang-base")
  install(CODE "
    file(GLOB libraries \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/tracewheel/erlang/priv/*.so\")
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND libraries)
      execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \${libraries} COMMAND_ERROR_IS_FATAL ANY)
    endif()" COMPONENT erlang)
endif()
tw_package(doc tracewheel-doc doc "documents and examples of tracewheel"
"What its commands show, how to ask questions, the format of captures, and how
it works.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
include(CPack)
