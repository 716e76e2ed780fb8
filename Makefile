# The face of the build; meson and ninja do the work.
.PHONY: all run test sanitize conformance bench fuzz format tidy deps clean

all: build/build.ninja
	@ninja -C build

deps:
	@scripts/install-dependencies

build/build.ninja: | deps
	@meson setup build >/dev/null && echo "configured build/"

test: deps all
	@scripts/test build
