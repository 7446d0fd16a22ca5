//! The catalogue of every code: the rules that can decide something.
//!
//! A code has a stable name, and an exit status for commands that end with it. Its page in
//! `docs/codes/` has its meaning, an example and what to do. A code without a page does not
//! compile.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit::Exit;

macro_rules! catalogue {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $(| $earlier:literal)? => $exit:ident,)+) => {
        /// The rule that decided; see `provost explain`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $name $(, alias = $earlier)?)] $variant,)+
        }

        /// An error with a code, which a port reports as it is.
pub trait Coded: std::error::Error {
    /// The rule that decided; see `provost explain`.
    fn code(&self) -> Code;

    /// What the user can do about it, when the page of the code does not say enough.
    fn hint(&self) -> Option<&str> {
        None
    }
}

impl Code {
            /// Every code, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The name in bundles of format 1, if that differs.
            fn earlier_name(self) -> Option<&'static str> {
                match self {
                    $($(Self::$variant => Some($earlier),)?)+
                    _ => None,
                }
            }

            /// The exit status of a command that ends with this code.
            pub fn exit(self) -> Exit {
                match self { $(Self::$variant => Exit::$exit,)+ }
            }

            /// The page of the code, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!(
                        env!("CARGO_MANIFEST_DIR"), "/../../docs/codes/", $name, ".md"
                    )),)+
                }
            }
        }
    };
}

catalogue! {
    /// Every rule was checked and held.
    Ok = "OK" => Yes,

    // Requests.
    /// The command line is wrong.
    UsageError = "USAGE_ERROR" => Usage,
    /// A file that was named cannot be read.
    InputUnreadable = "INPUT_UNREADABLE" => Usage,
    /// A file that was named is larger than the limit.
    InputTooLarge = "INPUT_TOO_LARGE" => Usage,
    /// A payload violates its format.
    InputInvalid = "INPUT_INVALID" => Usage,
    /// The directory is not inside a git repository.
    NotARepository = "NOT_A_REPOSITORY" => Usage,
    /// Something named on the command line does not exist.
    NotFound = "NOT_FOUND" => Usage,

    // Contract and scope.
    /// An entry of the scope cannot be used.
    ScopeInvalid = "SCOPE_INVALID" => No,
    /// The contract violates a rule.
    ContractInvalid = "CONTRACT_INVALID" => No,
    /// A contract names an agent that is not in the registry.
    AgentUnknown = "AGENT_UNKNOWN" => No,
    /// A contract does not bind the output of its agent to the right schema.
    OutputSchemaUnbound = "OUTPUT_SCHEMA_UNBOUND" => No,
    /// A contract grants its agent more than its role may have.
    PrivilegeExceeded = "PRIVILEGE_EXCEEDED" => No,
    /// The resolved view of a role differs from the contract it is in.
    RoleContractDrift = "ROLE_CONTRACT_DRIFT" => No,
    /// A contract or a command holds the value of a secret.
    SecretInContract = "SECRET_IN_CONTRACT" => Usage,
    /// A contract names a tool that its agent cannot get.
    ToolRefused = "TOOL_REFUSED" => No,
    /// A contract asks for a server that may ask the model.
    SamplingRefused = "SAMPLING_REFUSED" => No,
    /// A contract is for a search, and there is no search tool.
    SearchUnavailable = "SEARCH_UNAVAILABLE" => No,
    /// An acceptance command is not allowed.
    CommandRefused = "COMMAND_REFUSED" => No,

    // Approvals.
    /// A person must approve what the contract widens.
    ApprovalNeeded = "APPROVAL_NEEDED" => NotNow,
    /// A person rejected what the contract widens.
    ApprovalRejected = "APPROVAL_REJECTED" => No,
    /// There is no pending question to answer.
    NothingToApprove = "NOTHING_TO_APPROVE" => No,

    // The diff gate.
    /// The change exceeds what the contract permits.
    DiffRefused = "DIFF_REFUSED" => No,
    /// The change would add a secret to the repository.
    SecretInPatch = "SECRET_IN_PATCH" => No,
    /// The agent left no change that could land.
    EmptyDiff = "EMPTY_DIFF" => No,

    // Foreign formats.
    /// A control packet violates its format, or its phase is not accepted.
    PacketRefused = "PACKET_REFUSED" => No,

    // The agent.
    /// The agent failed.
    AgentFailed = "AGENT_FAILED" => No,
    /// The agent is an MCP server and violates the protocol.
    AgentProtocol = "AGENT_PROTOCOL" => No,
    /// The agent exceeded its time limit.
    AgentTimeout = "AGENT_TIMEOUT" => No,
    /// The agent exceeded its output limit.
    AgentOutputLimit = "AGENT_OUTPUT_LIMIT" => No,
    /// The agent, or an acceptance command, neither printed nor changed anything for too long.
    NoProgress = "NO_PROGRESS" => No,
    /// The agent, or an acceptance command, exceeded its memory limit.
    MemoryLimit = "MEMORY_LIMIT" => No,
    /// The agent, or an acceptance command, exceeded its process limit.
    ProcessLimit = "PROCESS_LIMIT" => No,
    /// The agent, or an acceptance command, exceeded its disk limit.
    DiskLimit = "DISK_LIMIT" => No,
    /// The agent exceeded its budget.
    TokenLimit = "TOKEN_LIMIT" => No,
    /// The model of the agent refused its login.
    ModelUnauthorized = "MODEL_UNAUTHORIZED" => Lacking,
    /// The login of the agent is missing, has expired, or cannot be read.
    LoginUnusable = "LOGIN_UNUSABLE" => Lacking,
    /// The model of the agent cannot be reached.
    ModelUnreachable = "MODEL_UNREACHABLE" => Lacking,
    /// The agent died with its driver too often to be started again.
    AgentLost = "AGENT_LOST" => No,
    /// The agent's structured result says that its work is not done.
    AgentReportedFailure = "AGENT_REPORTED_FAILURE" => No,
    /// The agent's structured result does not match its schema.
    OutputInvalid = "OUTPUT_INVALID" => No,
    /// An agent did, or tried, what no agent or its contract may do.
    ForbiddenAction = "FORBIDDEN_ACTION" => No,
    /// The run was cancelled.
    Cancelled = "CANCELLED" => No,

    // The network.
    /// A program in a sandbox requested a network endpoint that is not granted.
    NetworkRefused = "NETWORK_REFUSED" => No,
    /// A person was asked whether the agent may reach the endpoint.
    NetworkAsked = "NETWORK_ASKED" => No,
    /// A request to a model asks for what is not granted, or cannot be read.
    ModelRequestRefused = "MODEL_REQUEST_REFUSED" => No,
    /// A granted network endpoint does not answer.
    NetworkUnreachable = "NETWORK_UNREACHABLE" => Lacking,

    // Prepared layers.
    /// A preparation step produced no usable layer.
    PrepareFailed = "PREPARE_FAILED" => No,
    /// A virtual environment of the user cannot be given to sandboxes.
    VenvRefused = "VENV_REFUSED" => No,

    // Review.
    /// A review is required, and there is no valid one.
    ReviewInvalid = "REVIEW_INVALID" => No,
    /// The reviewer refuses the candidate.
    ReviewRefused = "REVIEW_REFUSED" => No,

    // Plans and chains.
    /// A plan is required, and there is no valid one.
    PlanInvalid = "PLAN_INVALID" => No,
    /// The planner refuses to make a plan.
    PlanRefused = "PLAN_REFUSED" => No,
    /// A chain violates a rule.
    ChainInvalid = "CHAIN_INVALID" => No,
    /// The results that a node of a chain starts from cannot be merged.
    ChainConflict = "CHAIN_CONFLICT" => No,
    /// A run is part of a split contract, and the parts together were not accepted.
    ChainNotAccepted = "CHAIN_NOT_ACCEPTED" => No,
    /// A node of a chain depends on one that was not accepted.
    NeedsRefused = "NEEDS_REFUSED" => No,

    // Acceptance.
    /// An acceptance command failed.
    AcceptanceFailed = "ACCEPTANCE_FAILED" => No,
    /// The program of an acceptance command does not exist in its sandbox.
    AcceptanceUnstartable = "ACCEPTANCE_UNSTARTABLE" => No,
    /// An acceptance command ran fewer tests than on the base, or none.
    TestsFewer = "TESTS_FEWER" => No,
    /// Tests may fail that fail on the base, and a command does not name those that failed.
    TestsUnnamed = "TESTS_UNNAMED" => No,
    /// An acceptance command exceeded its time limit.
    AcceptanceTimeout = "ACCEPTANCE_TIMEOUT" => No,
    /// The acceptance commands changed the tree that they tested.
    TreeChanged = "TREE_CHANGED" => No,

    // Concurrency.
    /// Another run holds a part of the scope.
    LeaseHeld = "LEASE_HELD" => NotNow,
    /// The lease expired or was taken while the run was active.
    LeaseLost = "LEASE_LOST" => NotNow,
    /// A request to the control room has no session, token or origin that is accepted.
    SessionRefused = "SESSION_REFUSED" => No,
    /// Another process drives this run.
    RunBusy = "RUN_BUSY" => NotNow,
    /// The run has ended already.
    RunOver = "RUN_OVER" => No,
    /// The work of the run may not be judged again without its agent.
    KeepWorkRefused = "KEEP_WORK_REFUSED" => No,
    /// The run has not ended yet.
    RunUnfinished = "RUN_UNFINISHED" => NotNow,

    // Untrusted origin.
    /// The run, or the chain, was not started by this user on this machine.
    RunForeign = "RUN_FOREIGN" => No,
    /// The runtime root came with a checkout, is a symbolic link, or belongs to another user.
    RootUnsafe = "ROOT_UNSAFE" => No,
    /// This user has not agreed to what a repository or an earlier run would access.
    ConsentNeeded = "CONSENT_NEEDED" => NotNow,
    /// A file to be written is behind a symbolic link of the checkout.
    LinkRefused = "LINK_REFUSED" => No,

    // The environment.
    /// The sandbox tier that the contract requires is not available here.
    SandboxUnavailable = "SANDBOX_UNAVAILABLE" | "BOX_UNAVAILABLE" => Lacking,
    /// The sandbox failed its self-test.
    SandboxLeaks = "SANDBOX_LEAKS" | "BOX_LEAKS" => Lacking,
    /// git is missing or too old.
    GitMissing = "GIT_MISSING" => Lacking,
    /// git failed unexpectedly.
    GitFailed = "GIT_FAILED" => Lacking,
    /// The operating system refused a file or a process.
    HostFailed = "HOST_FAILED" => Lacking,
    /// The registry or a ledger cannot be read or written.
    StoreFailed = "STORE_FAILED" => Lacking,

    // Landing.
    /// The run was not accepted, so there is nothing to land.
    NotAccepted = "NOT_ACCEPTED" => No,
    /// The target moved and the merge has a conflict.
    LandConflict = "LAND_CONFLICT" => No,
    /// The checkout of the target is not clean.
    CheckoutDirty = "CHECKOUT_DIRTY" => No,
    /// The target moved during the landing.
    TargetMoved = "TARGET_MOVED" => NotNow,
    /// git knows no name or address for the author of the commit.
    IdentityMissing = "IDENTITY_MISSING" => Lacking,
    /// The commit could not be signed as the user's git configuration asks.
    SigningFailed = "SIGNING_FAILED" => Lacking,
    /// The target is a branch that Provost does not move.
    TargetRefused = "TARGET_REFUSED" => No,

    // Git hooks.
    /// A commit or a push has no contract, and policy requires one.
    HookUnbound = "HOOK_UNBOUND" => No,
    /// The contract of a commit or a push is missing, changed or broken.
    HookBroken = "HOOK_BROKEN" => No,
    /// An agent is about to write a path that no intent declares.
    HookDenied = "HOOK_DENIED" => No,

    // Evidence.
    /// A byte of the evidence differs.
    EvidenceAltered = "EVIDENCE_ALTERED" => Untrusted,
    /// A part of the evidence is missing.
    EvidenceIncomplete = "EVIDENCE_INCOMPLETE" => Untrusted,
    /// The evidence carries no valid signature.
    SignatureInvalid = "SIGNATURE_INVALID" => Untrusted,
    /// The evidence is signed by a key that is not trusted here.
    KeyUnknown = "KEY_UNKNOWN" => No,
    /// The replay differs from the sealed run.
    ReplayDiffers = "REPLAY_DIFFERS" => No,
    /// The keys are accessible to other users, or cannot be read.
    KeyUnsafe = "KEY_UNSAFE" => Lacking,

    // Packages of child agents.
    /// A package or a request for one cannot be read.
    PackageMalformed = "PACKAGE_MALFORMED" => No,
    /// A child asks for more than its parent may delegate.
    PackageExceedsGrant = "PACKAGE_EXCEEDS_GRANT" => No,
    /// A package has two entries with one name.
    PackageDuplicate = "PACKAGE_DUPLICATE" => No,
    /// The schema version of a package is not supported.
    SchemaVersionUnsupported = "SCHEMA_VERSION_UNSUPPORTED" => No,
    /// A package does not name the route to its model.
    ProviderRouteIdMissing = "PROVIDER_ROUTE_ID_MISSING" => No,
    /// A package does not name its model.
    ProviderModelIdMissing = "PROVIDER_MODEL_ID_MISSING" => No,
    /// A capability of a reserved kind is marked as active.
    ReservedCapabilityActive = "RESERVED_CAPABILITY_ACTIVE" => No,
    /// A capability of a reserved kind is shown to the model.
    ReservedCapabilityProjected = "RESERVED_CAPABILITY_PROJECTED" => No,
    /// A capability of a reserved kind has an executor.
    ReservedCapabilityExecutable = "RESERVED_CAPABILITY_EXECUTABLE" => No,
    /// A model would see a capability that has no executor.
    VisibleCapabilityWithoutExecutor = "VISIBLE_CAPABILITY_WITHOUT_EXECUTOR" => No,
    /// A model would see a capability that only the host's policy governs.
    VisibleCapabilityHostPolicy = "VISIBLE_CAPABILITY_HOST_POLICY" => No,
    /// The schema of an output contract has no digest.
    OutputContractHashPrefix = "OUTPUT_CONTRACT_HASH_PREFIX" => No,
    /// The timeout of a hook is zero.
    HookTimeoutZero = "HOOK_TIMEOUT_ZERO" => No,
    /// A hook has a right that its point does not allow.
    HookRightNotAllowed = "HOOK_RIGHT_NOT_ALLOWED" => No,
    /// A nonblocking hook may change something.
    HookNonblockingMutates = "HOOK_NONBLOCKING_MUTATES" => No,
    /// A security hook lets the action pass if the hook fails.
    HookFailOpenSecurity = "HOOK_FAIL_OPEN_SECURITY" => No,
    /// A hook has no sidecar that represents it in the fingerprint.
    HookSidecarMissing = "HOOK_SIDECAR_MISSING" => No,
    /// The sidecar of a hook does not match the hook.
    HookSidecarMismatch = "HOOK_SIDECAR_MISMATCH" => No,
    /// The schema version of an isolation requirement is not supported.
    IsolationSchemaVersion = "ISOLATION_SCHEMA_VERSION" => No,
    /// A summary is to be handed over with a budget of no tokens.
    HandoffSummaryZeroTokens = "HANDOFF_SUMMARY_ZERO_TOKENS" => No,
    /// Selected documents are to be handed over, and none is selected.
    HandoffSelectedRefsEmpty = "HANDOFF_SELECTED_REFS_EMPTY" => No,
    /// The full history is to be handed over without an audit.
    HandoffFullHistoryNoAudit = "HANDOFF_FULL_HISTORY_NO_AUDIT" => No,
    /// Only the host's policy governs a summary that is handed over.
    HandoffHostPolicySummaryOnly = "HANDOFF_HOST_POLICY_SUMMARY_ONLY" => No,
    /// Only the host's policy governs documents that are handed over.
    HandoffHostPolicySelectedRefs = "HANDOFF_HOST_POLICY_SELECTED_REFS" => No,
    /// Only the host's policy governs a history that is handed over.
    HandoffHostPolicyFullHistoryWithPolicy = "HANDOFF_HOST_POLICY_FULL_HISTORY_WITH_POLICY" => No,
    /// A child would keep the tools that start children.
    RecursionNotStripped = "RECURSION_NOT_STRIPPED" => No,
    /// The parent's package is not the one the request was made for.
    ParentFingerprintMismatch = "PARENT_FINGERPRINT_MISMATCH" => No,
    /// A child asks for a route that its parent does not allow.
    RouteOverrideNotAllowed = "ROUTE_OVERRIDE_NOT_ALLOWED" => No,
    /// A route override names no route or no model.
    RouteOverrideBlank = "ROUTE_OVERRIDE_BLANK" => No,
    /// The id of a child is too long to derive the id of its package.
    ChildIdTooLong = "CHILD_ID_TOO_LONG" => No,
    DepthExhausted = "DEPTH_EXHAUSTED" => No,
    ChildrenExhausted = "CHILDREN_EXHAUSTED" => No,
    ChildrenNotGranted = "CHILDREN_NOT_GRANTED" => No,
    ChildBudgetExhausted = "CHILD_BUDGET_EXHAUSTED" => No,
    ChildRequestInvalid = "CHILD_REQUEST_INVALID" => Usage,
    ChildKeyReused = "CHILD_KEY_REUSED" => No,
    ChildUnknown = "CHILD_UNKNOWN" => No,
    ChildBaseRefused = "CHILD_BASE_REFUSED" => No,

    // The task board.
    /// A payload does not match the schema of its contract.
    SchemaInvalid = "SCHEMA_INVALID" => No,
    /// A required input is absent or empty.
    MissingRequiredInput = "MISSING_REQUIRED_INPUT" => No,
    /// The schema version of a payload is not supported.
    UnknownSchemaVersion = "UNKNOWN_SCHEMA_VERSION" => No,
    /// Two tasks lock the same resource.
    LockConflict = "LOCK_CONFLICT" => No,
    /// A task changed something outside its lock scope.
    ScopeViolation = "SCOPE_VIOLATION" => No,
    /// The transition between these two states is not allowed.
    InvalidTransition = "INVALID_TRANSITION" => No,
    /// A task that this one depends on is not done.
    DependencyNotMet = "DEPENDENCY_NOT_MET" => No,
    /// Another writer changed the board first.
    ConcurrencyConflict = "CONCURRENCY_CONFLICT" => No,
    /// The owner of a task sent no heartbeat in time.
    TaskTimeout = "TASK_TIMEOUT" => No,
    /// The rows, locks and events of a board are inconsistent.
    LedgerInconsistent = "LEDGER_INCONSISTENT" => No,
    /// An agent acted outside its role.
    NonCompliant = "NON_COMPLIANT" => No,
    /// A required check cannot be run.
    MissingValidator = "MISSING_VALIDATOR" => No,
    /// Free text holds a secret, or text that must not be passed on.
    UntrustedContextBlock = "UNTRUSTED_CONTEXT_BLOCK" => No,

    /// A bug in Provost.
    Bug = "BUG" => Bug,
}

impl Code {
    /// The codes that rows, blockers and logs of a task board may name.
    pub const OF_BOARD: [Self; 14] = [
        Self::SchemaInvalid,
        Self::MissingRequiredInput,
        Self::UnknownSchemaVersion,
        Self::LockConflict,
        Self::ScopeViolation,
        Self::InvalidTransition,
        Self::DependencyNotMet,
        Self::ConcurrencyConflict,
        Self::TaskTimeout,
        Self::AcceptanceFailed,
        Self::LedgerInconsistent,
        Self::NonCompliant,
        Self::MissingValidator,
        Self::UntrustedContextBlock,
    ];

    /// Finds a code by its name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| {
            let is_name = |known: &str| known.eq_ignore_ascii_case(name);
            is_name(code.name()) || code.earlier_name().is_some_and(is_name)
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flaws of `page` as the page of the code `name`.
    fn flaws(name: &str, page: &str) -> Vec<&'static str> {
        let mut flaws = Vec::new();
        let Some(rest) = page.strip_prefix(&format!("# {name}\n\n")) else {
            return vec!["does not begin with its name"];
        };
        let Some((what, rest)) = rest.split_once("\n\n## Example\n\n") else {
            return vec!["has no example"];
        };
        let Some((example, advice)) = rest.split_once("\n\n## What to do\n\n") else {
            return vec!["does not say what to do"];
        };
        // `provost explain` lists the first line as it is.
        let summary = what.lines().next().unwrap_or_default();
        if !summary.ends_with('.') || summary.contains(['`', '*', '#', '[']) {
            flaws.push("its first line is no plain sentence");
        }
        if what.contains("\n\n") {
            flaws.push("says what it means in more than one paragraph");
        }
        let mut lines = example.lines();
        if !lines
            .next()
            .is_some_and(|line| line.starts_with("    $ provost "))
            || !lines.next().is_some_and(|line| line.starts_with("    "))
        {
            flaws.push("its example is no command with its output");
        }
        if !advice.trim_end().ends_with(['.', ':']) || advice.split_whitespace().count() < 10 {
            flaws.push("its advice is too short");
        }
        if ["/home/", "/tmp/"].iter().any(|place| page.contains(place)) {
            flaws.push("names a place of one machine");
        }
        flaws
    }

    #[test]
    fn every_page_says_what_and_what_to_do() {
        for code in Code::ALL {
            let found = flaws(code.name(), code.page());
            assert!(found.is_empty(), "{code}: {found:?}");
        }
    }

    #[test]
    fn an_empty_part_of_a_page_is_a_flaw() {
        let good = "# A\n\nIt is so.\n\n## Example\n\n    $ provost a\n    no\n\n\
                    ## What to do\n\nDo this, and then that, and then look at it once more.\n";
        assert_eq!(flaws("A", good), Vec::<&str>::new());
        for (part, instead) in [
            ("# A", "# B"),
            ("It is so.", ""),
            ("It is so.", "It is `so`."),
            ("    $ provost a\n    no\n", ""),
            ("    no\n", ""),
            ("Do this, and then that, and then look at it once more.", ""),
            ("## What to do", "## More"),
        ] {
            let page = good.replacen(part, instead, 1);
            assert_ne!(flaws("A", &page), Vec::<&str>::new(), "{part} → {instead}");
        }
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(Code::parse("diff_refused"), Some(Code::DiffRefused));
        assert_eq!(Code::parse("nothing"), None);
    }
}
