//! A budget of tokens and money that requests reserve from before they are forwarded.
//!
//! # Invariants
//!
//! - [`BudgetAccount::reserve`] succeeds only if all that was settled and all that is reserved, the
//!   new reservation included, is within the grant.
//! - What a provider reports beyond a reservation is settled in full and counted as overshoot: less
//!   is left for the next request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::table::Prices;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

impl Amount {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
        }
    }
}

/// The most that may be spent; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl Grant {
    pub fn is_open(self) -> bool {
        self == Self::default()
    }

    /// Whether `spent` is within it.
    pub fn covers(self, spent: Amount) -> bool {
        let within = |most: Option<u64>, spent: u64| most.is_none_or(|most| spent <= most);
        within(self.tokens, spent.tokens) && within(self.micro_usd, spent.micro_usd)
    }
}

/// What a request may cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost<'a> {
    /// Tokens that the model reads, as estimated.
    pub input: u64,
    /// The most tokens that it may write.
    pub output: u64,
    /// The least for which the request is worth sending.
    pub least_output: u64,
    /// `None` if the prices of the model are not known.
    pub prices: Option<&'a Prices>,
}

impl Cost<'_> {
    /// The largest output that fits into `grant` when `taken` is gone, and what the request costs
    /// then.
    pub fn fitting(&self, grant: Grant, taken: Amount) -> Result<(u64, Amount), Shortage> {
        if grant.micro_usd.is_some() && self.prices.is_none() {
            return Err(Shortage::Unpriced);
        }
        self.largest(grant, taken).ok_or(Shortage::Spent)
    }

    fn largest(&self, grant: Grant, taken: Amount) -> Option<(u64, Amount)> {
        let mut output = self.output;
        if let Some(most) = grant.tokens {
            let left = most.checked_sub(taken.tokens)?.checked_sub(self.input)?;
            output = output.min(left);
        }
        if let (Some(most), Some(prices)) = (grant.micro_usd, self.prices) {
            let left = most.checked_sub(taken.micro_usd)?;
            output = output.min(prices.output_within(self.input, left)?);
        }
        let price = self.prices.map(|prices| prices.most(self.input, output));
        let amount = Amount {
            tokens: self.input.saturating_add(output),
            micro_usd: price.unwrap_or(0),
        };
        let fits = output >= self.least_output && grant.covers(taken.plus(amount));
        fits.then_some((output, amount))
    }
}

/// What was reserved for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Its number in the account.
    pub number: u64,
    pub amount: Amount,
    /// How many tokens the model may write.
    pub output: u64,
}

/// Why nothing is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Enough may be left when the other requests are settled.
    Busy,
    Spent,
    /// Money is limited, and the prices of the model are not known.
    Unpriced,
}

/// The budget of one agent.
#[derive(Debug, Clone, Default)]
pub struct BudgetAccount {
    grant: Grant,
    settled: Amount,
    open: BTreeMap<u64, Amount>,
    next: u64,
    overshoot: Amount,
}

impl BudgetAccount {
    pub fn new(grant: Grant) -> Self {
        Self {
            grant,
            ..Self::default()
        }
    }

    pub fn grant(&self) -> Grant {
        self.grant
    }

    pub fn settled(&self) -> Amount {
        self.settled
    }

    pub fn reserved(&self) -> Amount {
        let open = self.open.values();
        open.fold(Amount::default(), |sum, amount| sum.plus(*amount))
    }

    /// Whether all that was settled and is reserved is within the grant; overshoot may end that.
    pub fn is_within(&self) -> bool {
        self.grant.covers(self.settled.plus(self.reserved()))
    }

    /// What providers reported beyond reservations.
    pub fn overshoot(&self) -> Amount {
        self.overshoot
    }

    /// Reserves for a request; its output may be lowered to what is left.
    pub fn reserve(&mut self, cost: &Cost<'_>) -> Result<Reservation, Shortage> {
        let taken = self.settled.plus(self.reserved());
        let (output, amount) = cost.fitting(self.grant, taken).map_err(|shortage| {
            let later = !self.open.is_empty() && cost.fitting(self.grant, self.settled).is_ok();
            if later { Shortage::Busy } else { shortage }
        })?;
        let number = self.next;
        self.next += 1;
        self.open.insert(number, amount);
        Ok(Reservation {
            number,
            amount,
            output,
        })
    }

    /// The same reservation with less: `amount` for this many tokens of output.
    #[must_use]
    pub fn lowered(&mut self, made: Reservation, (output, amount): (u64, Amount)) -> Reservation {
        let Some(open) = self.open.get_mut(&made.number) else {
            return made;
        };
        *open = Amount {
            tokens: open.tokens.min(amount.tokens),
            micro_usd: open.micro_usd.min(amount.micro_usd),
        };
        Reservation {
            amount: *open,
            output: output.min(made.output),
            ..made
        }
    }

    /// Whether anything is reserved beside `reservation`.
    pub fn has_others(&self, reservation: &Reservation) -> bool {
        self.open.keys().any(|number| *number != reservation.number)
    }

    /// Ends a reservation with what the request `spent`.
    pub fn settle(&mut self, reservation: &Reservation, spent: Amount) {
        if self.open.remove(&reservation.number).is_some() {
            self.settled = self.settled.plus(spent);
            let beyond = spent.minus(reservation.amount);
            self.overshoot = self.overshoot.plus(beyond);
        }
    }
}

#[cfg(test)]
mod tests;
