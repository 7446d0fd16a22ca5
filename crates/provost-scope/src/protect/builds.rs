//! Files that the tools of compiled languages, and language-independent ones, read.

use super::table::{Row, oracle};

pub(super) const COMPILED: &[Row] = &[
    oracle(
        "Cargo",
        "cargo cargo-nextest rustc rustup clippy-driver rustfmt",
        "cargo.toml cargo.lock build.rs rust-toolchain rust-toolchain.toml clippy.toml \
         .clippy.toml rustfmt.toml .rustfmt.toml nextest.toml tarpaulin.toml .tarpaulin.toml \
         cross.toml insta.yaml .insta.yaml deny.toml",
        ".cargo .config",
    ),
    oracle(
        "Go",
        "go gotestsum golangci-lint staticcheck ginkgo mage",
        "go.mod go.sum go.work go.work.sum vendor/modules.txt .golangci.* staticcheck.conf \
         .gotestsum.* magefile.go go.env .go-version",
        "",
    ),
    oracle(
        "Maven",
        "mvn mvnw mvnd",
        "pom.xml mvnw mvnw.cmd maven-wrapper.*",
        ".mvn",
    ),
    oracle(
        "Gradle",
        "gradle gradlew",
        "*.gradle *.gradle.kts *.gradle.dcl gradle.properties gradlew gradlew.bat \
         gradle-wrapper.* libs.versions.toml *.versions.toml gradle.lockfile buildscript-gradle.lockfile \
         verification-metadata.xml",
        ".gradle buildsrc build-logic gradle/wrapper",
    ),
    oracle(
        "test frameworks of the JVM",
        "junit testng",
        "testng.xml testng-*.xml *-testng.xml junit-platform.properties org.junit.* \
         io.cucumber.* cucumber.properties kotest.properties spockconfig.groovy checkstyle*.xml \
         pmd*.xml spotbugs*.xml findbugs*.xml detekt.yml detekt-*.yml .java-version .sdkmanrc",
        "mockito-extensions",
    ),
    oracle(
        "sbt and Mill",
        "sbt mill scala scala-cli",
        "*.sbt .sbtopts .jvmopts project/build.properties project/*.scala build.sc build.mill \
         .mill-version .mill-jvm-opts .scalafmt.conf .scalafix.conf",
        ".bloop .metals",
    ),
    oracle(
        ".NET",
        "dotnet msbuild nuget",
        "*.csproj *.fsproj *.vbproj *.proj *.sln *.slnx *.slnf *.props *.targets *.runsettings \
         .runsettings *.testsettings *.ruleset nuget.config global.json packages.config \
         packages.lock.json dotnet-tools.json xunit.runner.json *.xunit.runner.json testconfig.json \
         *.testconfig.json msbuild.rsp directory.build.rsp .editorconfig .globalconfig \
         stylecop.json coverlet.runsettings paket.*",
        "",
    ),
    oracle(
        "Swift",
        "swift swiftlint xcodebuild",
        "package.swift package@swift-*.swift package.resolved .swift-version .swiftlint.yml \
         .swiftlint.yaml .swiftformat .swift-format *.xctestplan *.xcconfig",
        ".swiftpm",
    ),
    oracle(
        "CMake, CTest and Meson",
        "cmake ctest ninja meson",
        "cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json dartconfiguration.tcl \
         ctestcustom.* meson.build meson_options.txt meson.options build.ninja conanfile.py \
         conanfile.txt conan.lock vcpkg.json vcpkg-configuration.json .clang-tidy .clang-format",
        "",
    ),
    oracle(
        "Make and Autotools",
        "make gmake",
        "makefile gnumakefile bsdmakefile makefile.* gnumakefile.* *.mk *.mak *.make configure \
         configure.ac configure.in config.site",
        "",
    ),
    oracle(
        "Zig",
        "zig",
        "build.zig build.zig.zon .zigversion",
        ".zig-cache zig-cache",
    ),
    oracle(
        "Stack and Cabal",
        "stack cabal ghc hlint",
        "stack.yaml stack.yaml.lock stack-*.yaml *.cabal cabal.project cabal.project.* package.yaml \
         setup.hs setup.lhs .hspec .hspec-options .hlint.yaml fourmolu.yaml",
        ".stack-work dist-newstyle",
    ),
    oracle(
        "Bazel, Buck and Pants",
        "bazel bazelisk buck buck2 pants please",
        "workspace workspace.bazel workspace.bzlmod module.bazel module.bazel.lock build \
         build.bazel *.bzl .bazelrc *.bazelrc .bazelversion .bazelignore tools/bazel buck \
         .buckconfig .buckconfig.* pants.toml pants.*.toml .pants.rc .plzconfig .plzconfig.*",
        "",
    ),
];

pub(super) const OTHERS: &[Row] = &[
    oracle(
        "Ruby",
        "ruby rspec bundle rake minitest rails rubocop cucumber",
        ".rspec .rspec-local spec_helper.rb rails_helper.rb test_helper.rb gemfile gemfile.lock \
         gemfile.* gems.rb gems.locked rakefile rakefile.rb *.rake *.gemspec .ruby-version \
         .ruby-gemset .rubocop.yml .rubocop_todo.yml .simplecov guardfile appraisals .standard.yml \
         bin/rspec bin/rake bin/bundle bin/rails config/environments/test.rb",
        ".bundle vendor/bundle vendor/cache",
    ),
    oracle(
        "PHP",
        "php phpunit pest composer phpstan psalm phpcs codecept behat",
        "phpunit.xml phpunit.*.xml phpunit.xml.* phpunit-*.xml composer.json composer.lock \
         vendor/autoload.php .phpunit.result.cache pest.php phpstan.neon phpstan.*.neon \
         phpstan.neon.* phpstan-*.neon psalm.xml psalm.xml.* phpcs.xml phpcs.xml.* .phpcs.xml \
         .phpcs.xml.* .php-cs-fixer.* .php_cs .php_cs.* rector.php infection.json infection.json5 \
         codeception.yml codeception.*.yml *.suite.yml behat.yml behat.yml.* phpspec.yml \
         .php-version",
        "vendor/bin vendor/composer vendor/phpunit vendor/pestphp .phpunit.cache",
    ),
    oracle(
        "Elixir and Erlang",
        "mix elixir rebar3 erl",
        "mix.exs mix.lock .formatter.exs .credo.exs .dialyzer_ignore.exs .iex.exs test_helper.exs \
         config/test.exs rebar.config rebar.config.script rebar.lock coveralls.json",
        "_build",
    ),
    oracle(
        "shells",
        "bash sh dash zsh ksh ash fish pwsh powershell expect osascript bats shellspec \
         shellcheck",
        "setup_suite.bash .shellspec .shellspec-local .shellcheckrc .bats.yml",
        "",
    ),
    oracle(
        "Clojure",
        "lein clojure clj bb",
        "project.clj deps.edn bb.edn build.boot shadow-cljs.edn tests.edn profiles.clj",
        ".cpcache",
    ),
    oracle(
        "Dart and Flutter",
        "dart flutter melos",
        "pubspec.yaml pubspec.lock pubspec_overrides.yaml dart_test.yaml flutter_test_config.dart \
         analysis_options.yaml melos.yaml",
        ".dart_tool",
    ),
    oracle(
        "Perl",
        "perl prove",
        ".proverc makefile.pl build.pl cpanfile cpanfile.snapshot dist.ini .perlcriticrc \
         .perltidyrc",
        "",
    ),
    oracle(
        "R and Julia",
        "rscript julia",
        ".rprofile .renviron renv.lock renv/activate.r .lintr project.toml manifest.toml \
         juliaproject.toml juliamanifest.toml testthat.r",
        "",
    ),
    oracle(
        "further languages",
        "lua busted luacheck dune opam elm nim nimble crystal shards dub v groovy forge hardhat \
         luajit",
        ".busted .luacheckrc .luacov .luarc.json dune dune-project dune-workspace *.opam elm.json \
         *.nimble nim.cfg config.nims shard.yml shard.lock dub.json dub.sdl v.mod foundry.toml \
         remappings.txt hardhat.config.* truffle-config.js scarb.toml anchor.toml move.toml",
        "",
    ),
    oracle(
        "task runners",
        "just task mise direnv asdf nix devbox earthly invoke doit",
        "justfile .justfile *.just taskfile.* earthfile flake.nix flake.lock shell.nix default.nix \
         devenv.nix devenv.yaml devbox.json devbox.lock .envrc .tool-versions mise.toml .mise.toml \
         mise.*.toml .mise.*.toml .miserc.toml .rtx.toml .prototools .asdfrc dodo.py mise/config.toml",
        ".mise .direnv",
    ),
    oracle(
        "hooks before a commit",
        "pre-commit lefthook husky overcommit",
        ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml lefthook.* \
         .lefthook.* lefthook-local.* .huskyrc .huskyrc.* .overcommit.yml .yamllint .yamllint.* \
         .hadolint.* .codespellrc .sqlfluff .sqlfluffignore .editorconfig .typos.toml typos.toml \
         _typos.toml .taplo.toml taplo.toml .vale.ini .secrets.baseline",
        ".husky .githooks .lefthook",
    ),
];
