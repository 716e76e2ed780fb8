# The face of the build; meson and ninja do the work.
.PHONY: all run test sanitize thread-sanitize analyze coverage conformance bench fuzz format deps clean

all: build/build.ninja
	@ninja -C build

# A complete service with a tour of it, until Ctrl-C.
run: deps all
	@scripts/run

test: deps all
	@scripts/test build

# All tests again under the address and undefined-behaviour sanitizers.
sanitize: build-sanitize/build.ninja
	@ninja -C build-sanitize
	@scripts/test build-sanitize on-server tests/system/test_registration.py \
		tests/system/test_replay.py tests/system/test_lists.py tests/system/test_credits.py \
		tests/system/test_certifications.py tests/system/test_postgres.py

# Which lines and branches of src/ the tests reach.
coverage: build-coverage/build.ninja
	@ninja -C build-coverage
	@scripts/coverage build-coverage

# Against validators and services from outside (PyPI, Maven Central, npm, the Go module proxy).
conformance: deps all
	@tests/conformance/run build
	@tests/conformance/stripe/run build
	@tests/conformance/clients/run build
	@tests/conformance/examples/run build

bench: deps all
	@bench/run --build build

# The targets replay their corpus; fuzz/meson.build says how to fuzz with clang.
fuzz: deps all
	@meson test -C build --no-rebuild --suite fuzz

# What runs in threads, under the thread sanitizer: unit tests, and the system tests of all that the
# service does at the same time.
thread-sanitize: build-thread/build.ninja
	@ninja -C build-thread
	@scripts/test-threads build-thread

# The layout (.clang-format), clang-tidy (.clang-tidy) and the compiler's own analyzer.
analyze: deps all
	@scripts/analyze build

format: deps
	@clang-format -i $$(find src tests fuzz bench -name '*.[ch]')

deps:
	@scripts/install-dependencies

build/build.ninja: | deps
	@meson setup build >/dev/null && echo "configured build/"

build-sanitize/build.ninja: | deps
	@meson setup build-sanitize -Db_sanitize=address,undefined -Db_lundef=false >/dev/null && \
		echo "configured build-sanitize/"

build-thread/build.ninja: | deps
	@meson setup build-thread -Db_sanitize=thread -Db_lundef=false >/dev/null && \
		echo "configured build-thread/"

build-coverage/build.ninja: | deps
	@meson setup build-coverage -Db_coverage=true -Doptimization=0 >/dev/null && \
		echo "configured build-coverage/"

clean:
	@rm -rf build build-sanitize build-thread build-analyze build-coverage build-ci build-fuzz
