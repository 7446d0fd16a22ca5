//! Files that the tools of Python and JavaScript read.

use super::table::{Row, oracle};

pub(super) const PYTHON: &[Row] = &[
    oracle(
        "Python",
        "python pypy compileall",
        "sitecustomize.* usercustomize.* *.pth *.pyc *.pyo pyvenv.cfg .python-version \
         setup.py setup.cfg pyproject.toml *.egg-link",
        "sitecustomize usercustomize __pycache__ .venv venv .virtualenv site-packages \
         dist-packages *.egg-info *.dist-info .eggs __pypackages__",
    ),
    oracle(
        "pytest",
        "pytest",
        "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg \
         pyproject.toml .coveragerc .coveragerc.toml /pytest.py pytest/__main__.py",
        ".pytest_cache /_pytest",
    ),
    oracle(
        "unittest and its relatives",
        "unittest doctest nose2 nose stestr behave robot",
        "unittest.cfg nose.cfg .noserc nose2.cfg .stestr.conf .testr.conf behave.ini .behaverc \
         robot.toml /unittest.py unittest/__main__.py /doctest.py",
        ".stestr",
    ),
    oracle(
        "coverage",
        "coverage",
        ".coveragerc .coveragerc.toml tox.ini setup.cfg pyproject.toml /coverage.py",
        "",
    ),
    oracle(
        "tox and nox",
        "tox nox",
        "tox.ini tox.toml noxfile.py",
        ".tox .nox",
    ),
    oracle(
        "uv, Poetry and other installers",
        "uv poetry pdm hatch pipenv pixi",
        "uv.toml uv.lock poetry.toml poetry.lock pdm.toml .pdm.toml pdm.lock .pdm-python \
         hatch.toml pipfile pipfile.lock pixi.toml pixi.lock pylock.toml pylock.*.toml",
        ".pixi .hatch",
    ),
    oracle(
        "mypy",
        "mypy dmypy",
        "mypy.ini .mypy.ini setup.cfg pyproject.toml /mypy.py mypy/__main__.py",
        ".mypy_cache",
    ),
    oracle(
        "Pyright and other type checkers",
        "pyright basedpyright pyre pytype ty",
        "pyrightconfig.json basedpyrightconfig.json .pyre_configuration pytype.cfg ty.toml",
        "",
    ),
    oracle(
        "Python linters and formatters",
        "flake8 pylint ruff black isort bandit pydocstyle pycodestyle yapf autopep8 vulture",
        ".flake8 .pylintrc pylintrc .pylintrc.toml pylintrc.toml ruff.toml .ruff.toml .isort.cfg \
         .bandit .pydocstyle .pydocstyle.ini .pycodestyle .pep8 .style.yapf .yapfignore \
         /flake8.py /pylint.py /ruff.py pylint/__main__.py flake8/__main__.py ruff/__main__.py",
        ".ruff_cache .pylint.d",
    ),
];

pub(super) const JAVASCRIPT: &[Row] = &[
    oracle(
        "Node.js",
        "node nodejs",
        "package.json node.config.json .node-version .nvmrc",
        "node_modules .node_modules .node_libraries",
    ),
    oracle(
        "npm",
        "npm npx",
        "package.json package-lock.json npm-shrinkwrap.json .npmrc",
        "node_modules",
    ),
    oracle(
        "pnpm",
        "pnpm pnpx",
        ".npmrc pnpm-lock.yaml pnpm-workspace.yaml .pnpmfile.* pnpmfile.*",
        ".pnpm-store .pnpm",
    ),
    oracle(
        "Yarn",
        "yarn yarnpkg",
        ".yarnrc .yarnrc.yml .yarnrc.yaml yarn.lock yarn.config.* .pnp.* .yarn-integrity",
        ".yarn",
    ),
    oracle(
        "Bun",
        "bun bunx",
        "bunfig.toml .bunfig.toml bun.lock bun.lockb",
        "",
    ),
    oracle(
        "Deno",
        "deno",
        "deno.json deno.jsonc deno.lock import_map.json import-map.json",
        ".deno",
    ),
    oracle(
        "Jest",
        "jest",
        "jest.* jest-*.config.* jest-setup.* jest-e2e.json jest_*.config.* setuptests.* \
         .jestrc .jestrc.* test-runner-jest.config.*",
        "",
    ),
    oracle(
        "Vitest and Vite",
        "vitest vite",
        "vitest.* vitest-*.config.* vite.config.* vite.*.config.*",
        ".vite",
    ),
    oracle(
        "Mocha, AVA, tap and Jasmine",
        "mocha ava tap tape jasmine uvu qunit",
        ".mocharc .mocharc.* mocha.opts mocha.config.* ava.config.* .taprc \
         .taprc.* jasmine.json jasmine.mjs jasmine.js .jasmine.json qunit.config.*",
        ".tap",
    ),
    oracle(
        "coverage of JavaScript",
        "nyc c8 istanbul",
        ".nycrc .nycrc.* nyc.config.* .c8rc .c8rc.* .istanbul.yml",
        ".nyc_output",
    ),
    oracle(
        "browser tests",
        "playwright cypress karma wdio nightwatch testcafe protractor wtr web-test-runner testem",
        "playwright.config.* playwright-*.config.* playwright.*.config.* cypress.config.* \
         cypress.*.config.* cypress.json cypress.env.json karma.conf.* karma.*.conf.* \
         karma.config.* wdio.conf.* wdio.*.conf.* nightwatch.conf.* nightwatch.json .testcaferc.* \
         protractor.conf.* web-test-runner.config.* web-test-runner.*.config.* wtr.config.* \
         testem.* .testem.* codecept.conf.* codecept.*.conf.* cucumber.* .cucumberrc \
         puppeteer.config.* .puppeteerrc .puppeteerrc.* lighthouserc.* .lighthouserc.* \
         backstop.json .percy.yml stryker.conf.* stryker.config.*",
        "cypress/plugins cypress/support",
    ),
    oracle(
        "compilers for JavaScript",
        "tsc babel swc tsx ts-node esbuild",
        "tsconfig.json tsconfig.*.json tsconfig-*.json tsconfig_*.json jsconfig.json \
         jsconfig.*.json .babelrc .babelrc.* babel.config.* .swcrc .tsnode.json esbuild.config.*",
        "",
    ),
    oracle(
        "bundlers and frameworks",
        "webpack rollup next nuxt ng svelte-check astro parcel rspack",
        "webpack.config.* webpack.*.config.* rollup.config.* rollup.*.config.* next.config.* \
         nuxt.config.* angular.json .angular-cli.json svelte.config.* astro.config.* .parcelrc \
         rspack.config.* rsbuild.config.* tsup.config.* craco.config.* config-overrides.js \
         vue.config.* metro.config.* ember-cli-build.js .ember-cli",
        "",
    ),
    oracle(
        "task runners for JavaScript",
        "nx turbo lerna rush gulp grunt wireit moon",
        "nx.json turbo.json turbo.jsonc lerna.json rush.json gulpfile.* gruntfile.* \
         .gulp.* wireit.json .moon.yml",
        ".nx .turbo .moon",
    ),
    oracle(
        "ESLint",
        "eslint eslint_d xo standard",
        ".eslintrc .eslintrc.* eslint.config.* .eslintignore .eslintcache .xo-config .xo-config.* \
         xo.config.*",
        "",
    ),
    oracle(
        "other linters and formatters",
        "prettier biome oxlint stylelint tslint jshint dprint knip markdownlint \
         markdownlint-cli2 cspell commitlint lint-staged",
        ".prettierrc .prettierrc.* prettier.config.* .prettierignore biome.json biome.jsonc \
         .biome.json .biome.jsonc .oxlintrc.json oxlintrc.json .oxlintignore .stylelintrc \
         .stylelintrc.* stylelint.config.* .stylelintignore tslint.json .jshintrc .jshintignore \
         .jscsrc dprint.json dprint.jsonc .dprint.json .dprint.jsonc knip.* .knip.* \
         .markdownlint.* .markdownlint-cli2.* .markdownlintrc .markdownlintignore cspell.json \
         .cspell.* cspell.config.* .commitlintrc .commitlintrc.* commitlint.config.* \
         .lintstagedrc .lintstagedrc.* lint-staged.config.* .depcheckrc .size-limit.*",
        "",
    ),
];
