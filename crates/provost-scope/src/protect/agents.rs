//! Files that build servers and coding agents read.

use super::table::{Row, governing, oracle};

pub(super) const CI: &[Row] = &[
    oracle(
        "GitHub, Forgejo and Gitea",
        "act",
        ".actrc codeowners",
        ".github .forgejo .gitea",
    ),
    oracle(
        "GitLab",
        "",
        ".gitlab-ci.yml .gitlab-ci.yaml *.gitlab-ci.yml .gitlab-ci.*.yml .gitlab-ci-*.yml",
        ".gitlab .gitlab-ci",
    ),
    oracle(
        "CircleCI and Travis CI",
        "",
        ".travis.yml",
        ".circleci .travis",
    ),
    oracle(
        "Azure, AWS, Google and Bitbucket pipelines",
        "",
        "azure-pipelines.* azure-pipelines-*.* *.azure-pipelines.yml .azure-pipelines.* \
         buildspec.yml buildspec.yaml buildspec-*.yml buildspec.*.yml cloudbuild.yaml cloudbuild.yml \
         cloudbuild.json cloudbuild-*.yaml cloudbuild.*.yaml bitbucket-pipelines.yml \
         bitbucket-pipelines.yaml",
        ".azure-pipelines .azuredevops .azure .pipelines",
    ),
    oracle(
        "Jenkins, TeamCity and Buildkite",
        "",
        "jenkinsfile jenkinsfile.* *.jenkinsfile",
        ".jenkins .teamcity .buildkite .ci",
    ),
    oracle(
        "Drone, Woodpecker, Cirrus, Semaphore, AppVeyor, sourcehut and Zuul",
        "",
        ".drone.* .woodpecker.* .cirrus.* appveyor.yml .appveyor.yml .build.yml .zuul.yaml zuul.yaml",
        ".drone .woodpecker .semaphore .builds .zuul.d zuul.d",
    ),
    oracle(
        "further build servers",
        "",
        "wercker.yml codefresh.yml .vela.yml screwdriver.yaml shippable.yml .shippable.yml \
         .scrutinizer.yml .styleci.yml bitrise.yml codemagic.yaml .cnb.yml concourse.yml \
         .gocd.yml *.gocd.yaml dangerfile dangerfile.* vercel.json netlify.toml .nevercode",
        ".codefresh .tekton .harness .expeditor .concourse .bitrise .spinnaker",
    ),
    oracle(
        "services that judge a change",
        "",
        "codecov.yml .codecov.yml codecov.yaml .codecov.yaml .coveralls.yml \
         sonar-project.properties .sonarcloud.properties .codeclimate.yml .codeclimate.json \
         .deepsource.toml .lgtm.yml .mergify.yml renovate.json renovate.json5 .renovaterc \
         .renovaterc.* .snyk .trivyignore .gitleaks.toml .gitleaksignore .gitguardian.* \
         .semgrepignore .semgrep.yml",
        ".codecov .deepsource .mergify .semgrep",
    ),
];

pub(super) const AGENTS: &[Row] = &[
    governing(
        "instructions that several agents read",
        "agents.md agents.*.md agent.md copilot-instructions.md *.instructions.md *.prompt.md \
         *.chatmode.md *.agent.md .rules .aiexclude .aiignore .aigitignore .mcp.json mcp.json \
         .mcp.toml",
        ".agents .agent .mcp .rulesync .ruler",
    ),
    governing(
        "Claude Code",
        "claude.md claude.*.md .claude.json .claudeignore",
        ".claude",
    ),
    governing("Codex", "codex.md codex.*.md", ".codex"),
    governing(
        "Gemini CLI",
        "gemini.md gemini.*.md .geminiignore",
        ".gemini",
    ),
    governing("Copilot", ".copilotignore", ".copilot"),
    governing(
        "Cursor and Windsurf",
        ".cursorrules .cursorignore .cursorindexingignore .windsurfrules .codeiumignore",
        ".cursor .windsurf .codeium",
    ),
    governing(
        "Cline, Roo and Kilo Code",
        ".clinerules .clinerules-* .clineignore .roorules .roorules-* .roomodes .rooignore \
         .kilocodemodes .kilocodeignore .kilocoderules",
        ".clinerules .cline .roo .kilocode",
    ),
    governing("Aider", ".aider.* .aiderignore .aiderrules", ".aider"),
    governing(
        "Continue",
        ".continuerc.json .continuerules .continueignore",
        ".continue",
    ),
    governing(
        "opencode, Crush, Amp, Goose, Qwen Code and Warp",
        "opencode.md opencode.json opencode.jsonc .opencode.json crush.md crush.json .crush.json \
         .crushignore .goosehints .gooseignore qwen.md .qwenignore warp.md",
        ".opencode .crush .amp .goose .qwen .warp",
    ),
    governing(
        "Kiro, Amazon Q, Junie, Augment, Trae, Factory, OpenHands, Devin and Jules",
        ".augment-guidelines .augmentignore .junierules jules.md .openhands_instructions",
        ".kiro .amazonq .junie .augment .trae .factory .openhands .devin .jules .firebender \
         .zencoder .tabnine .cody .sourcegraph .qodo .serena .taskmaster .specify .bmad-core",
    ),
    governing(
        "reviewers that are agents",
        ".coderabbit.yaml .coderabbit.yml .pr_agent.toml .sourcery.yaml sweep.yaml greptile.json \
         .ellipsis.yml ellipsis.yaml",
        ".bito .greptile",
    ),
    governing(
        "editors, which run tasks and agents",
        "*.code-workspace",
        ".vscode .zed .fleet .idea",
    ),
    governing(
        "development containers and hosted editors",
        ".devcontainer.json devcontainer.json .gitpod.yml .gitpod.dockerfile .replit replit.md \
         replit.nix",
        ".devcontainer .gitpod .idx .codesandbox",
    ),
];
