use super::*;

const PRICES: Prices = Prices {
    input: 3000,
    cache_write: 3750,
    cache_read: 300,
    output: 15_000,
};

fn cost(input: u64, output: u64) -> Cost<'static> {
    Cost {
        input,
        output,
        least_output: 1,
        prices: Some(&PRICES),
    }
}

fn tokens(most: u64) -> BudgetAccount {
    BudgetAccount::new(Grant {
        tokens: Some(most),
        micro_usd: None,
    })
}

fn spent(tokens: u64) -> Amount {
    Amount {
        tokens,
        ..Amount::default()
    }
}

#[test]
fn an_output_limit_is_lowered_to_what_is_left_and_never_below_its_least() {
    let mut account = tokens(1000);
    let first = account.reserve(&cost(100, 500)).unwrap();
    assert_eq!((first.output, first.amount.tokens), (500, 600));
    let second = account.reserve(&cost(100, 500)).unwrap();
    assert_eq!((second.output, second.amount.tokens), (300, 400));
    assert_eq!(account.reserve(&cost(100, 500)), Err(Shortage::Busy));
    assert_eq!(account.reserve(&cost(2000, 5)), Err(Shortage::Spent));
    account.settle(&first, spent(50));
    let thinking = Cost {
        least_output: 501,
        ..cost(50, 9000)
    };
    assert_eq!(account.reserve(&thinking), Err(Shortage::Busy));
    account.settle(&second, spent(50));
    assert_eq!(account.reserve(&thinking).unwrap().output, 850);
}

#[test]
fn what_a_provider_reports_beyond_a_reservation_blocks_the_next() {
    let mut account = tokens(1000);
    let only = account.reserve(&cost(100, 200)).unwrap();
    account.settle(&only, spent(1100));
    account.settle(&only, spent(1100));
    assert_eq!(account.settled().tokens, 1100, "it is settled once");
    assert_eq!(account.overshoot().tokens, 800);
    assert_eq!(account.reserve(&cost(1, 1)), Err(Shortage::Spent));
}

#[test]
fn a_reservation_can_be_lowered_to_what_is_left_of_a_shared_budget() {
    let mut account = tokens(1000);
    let shared = |left| Grant {
        tokens: Some(left),
        micro_usd: None,
    };
    let wanted = cost(100, 500);
    let none = Amount::default();
    assert_eq!(wanted.fitting(shared(100), none), Err(Shortage::Spent));
    let fits = wanted.fitting(shared(300), none).unwrap();
    let made = account.reserve(&wanted).unwrap();
    let made = account.lowered(made, fits);
    assert_eq!((made.output, made.amount.tokens), (200, 300));
    assert_eq!(account.reserved(), made.amount);
    assert!(!account.has_others(&made));
    // It is never raised again.
    let same = account.lowered(made, (900, spent(900)));
    assert_eq!((same.output, same.amount.tokens), (200, 300));
}

#[test]
fn money_is_reserved_by_the_dearest_kind_and_needs_known_prices() {
    let grant = Grant {
        tokens: None,
        micro_usd: Some(10_000),
    };
    let mut account = BudgetAccount::new(grant);
    let unpriced = Cost {
        prices: None,
        ..cost(1, 1)
    };
    assert_eq!(account.reserve(&unpriced), Err(Shortage::Unpriced));
    // 1000 tokens read cost 3750 at most, so 6250 are left: 416 tokens written.
    let made = account.reserve(&cost(1000, 9000)).unwrap();
    assert_eq!((made.output, made.amount.micro_usd), (416, 9990));
    assert_eq!(account.reserve(&cost(1, 1)), Err(Shortage::Busy));
    account.settle(
        &made,
        Amount {
            tokens: 1416,
            micro_usd: 9990,
        },
    );
    assert_eq!(account.reserve(&cost(1, 1)), Err(Shortage::Spent));
}

/// A small generator, so that a failure names its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

#[test]
fn settled_and_reserved_never_exceed_the_grant_in_any_order_of_fifty_requests() {
    for seed in 0..10_000 {
        let mut dice = Dice(seed);
        let grant = Grant {
            tokens: Some(1 + dice.roll(20_000)),
            micro_usd: (dice.roll(2) == 0).then(|| 1 + dice.roll(200_000)),
        };
        let mut account = BudgetAccount::new(grant);
        let mut open: Vec<Reservation> = Vec::new();
        let mut asked = 0;
        while asked < 50 || !open.is_empty() {
            if asked < 50 && (open.is_empty() || dice.roll(2) == 0) {
                asked += 1;
                if let Ok(made) = account.reserve(&cost(dice.roll(900), 1 + dice.roll(900))) {
                    open.push(made);
                    let sum = account.settled().plus(account.reserved());
                    assert!(grant.covers(sum), "seed {seed}: {sum:?} of {grant:?}");
                }
                continue;
            }
            let ended = usize::try_from(dice.roll(open.len() as u64)).unwrap();
            let ended = open.swap_remove(ended);
            // One provider in ten reports more than was reserved.
            let more = if dice.roll(10) == 0 {
                dice.roll(500)
            } else {
                0
            };
            let used = dice.roll(ended.amount.tokens + 1) + more;
            let money = dice.roll(ended.amount.micro_usd + 1) + more;
            let before = account.settled();
            account.settle(
                &ended,
                Amount {
                    tokens: used,
                    micro_usd: money,
                },
            );
            assert_eq!(
                account.settled().tokens,
                before.tokens + used,
                "seed {seed}"
            );
        }
        assert_eq!(account.reserved(), Amount::default(), "seed {seed}");
        assert!(
            grant.covers(account.settled().minus(account.overshoot())),
            "seed {seed}: only overshoot passes the grant"
        );
    }
}
