# The face of the build; meson and ninja do the work.
.PHONY: all everything install deb sbom package-test release run test test-all histories sanitize sanitize-core thread-sanitize analyze java-client coverage conformance pictures bench fuzz format source-map clean

# The groups of scripts/packages.txt that a target needs are its prerequisites, deps-GROUP.
deps := deps-run deps-test deps-analysis deps-java deps-package deps-release deps-conformance
.PHONY: $(deps)

# The programs. Of a tree without build/ the first build is a quick one (meson_options.txt: joined); ccache is used
# where it is installed. `everything` makes it one with tests, in which each source is optimized by itself; it stays
# so.
programs := constancia constancia-renderer constancia-trusted-list loaded.so
quick := -Dtests=false -Djoined=true -Doptimization=1 -Ddebug=false
full := -Dtests=true -Djoined=false -Doptimization=2 -Ddebug=true
is_on = jq -e '.[] | select(.name == "$(1)").value' build/meson-info/intro-buildoptions.json >/dev/null 2>&1

# Where sources that were joined do not compile, they are compiled one by one.
all: build/build.ninja
	@ninja -C build $(programs) || { $(call is_on,joined) && \
		meson configure build -Djoined=false && ninja -C build $(programs); }

everything: deps-test
	@[ -f build/build.ninja ] || { meson setup build >/dev/null && echo "configured build/"; }
	@$(call is_on,tests) || meson configure build $(full)
	@ninja -C build

# Programs, unit, pages and examples: make install DESTDIR=… PREFIX=/usr; what needs the tests is not
# built for it.
PREFIX ?= /usr/local
install: deps-run
	@[ -f build-install/build.ninja ] || meson setup build-install -Dtests=false >/dev/null
	@meson configure build-install -Dtests=false -Dprefix=$(PREFIX) -Dlibexecdir=libexec -Dsysconfdir=/etc
	@ninja -C build-install
	@DESTDIR=$(abspath $(DESTDIR)) meson install -C build-install --no-rebuild

# The Debian package, its source and its debugging symbols, in build-deb/.
deb: deps-package
	@scripts/deb build-deb

# What the programs consist of (CycloneDX).
sbom: deps-run all
	@scripts/sbom --version "$$(build/constancia version | cut -d' ' -f2)" build/constancia \
		build/constancia-renderer build/constancia-trusted-list build/loaded.so > build/constancia.cdx.json
	@echo build/constancia.cdx.json

# The Debian package: built twice, judged, installed, upgraded and purged in a clean system.
package-test: deps-conformance everything
	@tests/package/run build

# Everything that a release consists of, in build-release/: make release KEY=FINGERPRINT (or UNSIGNED=1, for tests)
# [OUTPUT=DIR] [WORK=DIR] [PARTS=source,packages,clients,image,repository]. scripts/release --help describes it.
release: deps-release
	@scripts/release $(if $(KEY),--key $(KEY)) $(if $(UNSIGNED),--unsigned) $(if $(OUTPUT),--output $(OUTPUT)) \
		$(if $(WORK),--work $(WORK)) $(if $(PARTS),--parts $(PARTS))

# A complete service with a tour of it, until Ctrl-C.
run: deps-run all
	@scripts/run

# docs/develop/tests.md: what has to pass before a change lands, and everything.
test: everything
	@scripts/test --budget
test-all: everything
	@scripts/test all

# Random histories of the service, checked by rules (docs/develop/histories.md): make histories MINUTES=60
# [STORE=postgresql] [STATE=FILE] [SEED=N]. The same command with STATE continues.
MINUTES ?= 10
STORE ?= sqlite
histories: everything
	@CONSTANCIA=$(abspath build/constancia) /usr/bin/python3 -B tests/histories/histories.py --minutes $(MINUTES) \
		--store $(STORE) $(if $(STATE),--state $(STATE)) $(if $(SEED),--seed $(SEED))

# Under the address and undefined-behaviour sanitizers; sanitize-core is what a change has to pass.
sanitize sanitize-core: build-sanitize/build.ninja
	@ninja -C build-sanitize
	@scripts/test --build build-sanitize $@

# Which lines and branches of src/ the tests reach.
coverage: build-coverage/build.ninja
	@ninja -C build-coverage
	@scripts/coverage build-coverage

# What takes too long for every change: clang's analyzer, another release of Debian, another compiler, and validators
# and services from outside (PyPI, Maven Central, npm, the Go module proxy).
conformance: deps-conformance everything
	@scripts/analyze build paths
	@tests/conformance/run build
	@tests/package/run build
	@tests/package/release build
	@tests/package/ten_steps build
	@tests/conformance/image/run build
	@tests/package/first_minute
	@tests/conformance/debian13 build
	@tests/conformance/clang build
	@tests/conformance/stripe/run build
	@tests/conformance/log/run build
	@tests/conformance/clients/run build
	@tests/conformance/examples/run build
	@tests/conformance/pages/run build
	@CONSTANCIA=$(CURDIR)/build/constancia \
		/usr/bin/python3 -B -m pytest -q -p no:cacheprovider tests/conformance/test_postgresql_archive.py
	@tests/conformance/charts/run build

# Pictures of every page for people, to be looked at: build/pictures.
pictures: everything
	@scripts/pictures build/constancia build/pictures

bench: everything
	@bench/run --build build

# The targets replay their corpus; fuzz/meson.build says how to fuzz with clang.
fuzz: everything
	@meson test -C build --no-rebuild --suite fuzz

# Under the thread sanitizer: the unit tests of what has threads, and the system tests of all that the service does
# concurrently.
thread-sanitize: build-thread/build.ninja
	@scripts/test --build build-thread thread

# The layout (.clang-format), clang-tidy (.clang-tidy) and the compiler's own analyzer.
analyze: deps-analysis everything
	@scripts/analyze build

# The Java client, made and tested with Maven, which fetches what it needs from Maven Central; its jars are in build/java.
java-client: deps-java everything
	@tests/conformance/clients/java-client build

# docs/develop/source-map.md and the pages that it links to.
source-map:
	@scripts/source-map

format: deps-analysis
	@clang-format -i $$(find src tests fuzz bench -name '*.[ch]')

$(deps):
	@scripts/install-dependencies $(@:deps-%=%)

build/build.ninja: | deps-run
	@meson setup build $(quick) >/dev/null && echo "configured build/"

# The reports of sanitizers need line numbers, and no other debug information.
sanitized := -Doptimization=1 -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1

build-sanitize/build.ninja: | deps-test
	@meson setup build-sanitize $(sanitized) -Db_sanitize=address,undefined -Db_lundef=false >/dev/null && \
		echo "configured build-sanitize/"

build-thread/build.ninja: | deps-test
	@meson setup build-thread $(sanitized) -Db_sanitize=thread -Db_lundef=false >/dev/null && \
		echo "configured build-thread/"

build-coverage/build.ninja: | deps-test
	@meson setup build-coverage -Db_coverage=true -Doptimization=0 >/dev/null && \
		echo "configured build-coverage/"

clean:
	@rm -rf build build-sanitize build-thread build-analyze build-coverage build-ci build-fuzz \
		build-install build-deb
