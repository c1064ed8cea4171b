/** The day and the month of a moment, in the zone of the quotas. Dates are YYYY-MM-DD, times epoch milliseconds. */
export interface CurrentPeriods {
  readonly day: string;
  /** First of the month. */
  readonly month: string;
  readonly previousDay: string;
  readonly previousMonth: string;
  readonly dayEndsAt: number;
  readonly monthEndsAt: number;
}

const startOf = (date: Temporal.PlainDate, timeZone: string): number =>
  // A day on which the clocks change has 23 or 25 hours, and may begin at one o'clock.
  date.toZonedDateTime({ timeZone }).startOfDay().epochMilliseconds;

const periodsAt = (now: number, timeZone: string): CurrentPeriods & { readonly dayStartedAt: number } => {
  const day = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timeZone).toPlainDate();
  const month = day.with({ day: 1 });
  return {
    day: day.toString(),
    month: month.toString(),
    previousDay: day.subtract({ days: 1 }).toString(),
    previousMonth: month.subtract({ months: 1 }).toString(),
    dayStartedAt: startOf(day, timeZone),
    dayEndsAt: startOf(day.add({ days: 1 }), timeZone),
    monthEndsAt: startOf(month.add({ months: 1 }), timeZone),
  };
};

/** Calendars are slow, and a day is long: it is looked up once. */
export const createPeriodClock = (timeZone: string, now: () => number) => {
  let periods = periodsAt(now(), timeZone);
  return {
    timeZone,
    current(): CurrentPeriods {
      const at = now();
      if (at >= periods.dayEndsAt || at < periods.dayStartedAt) periods = periodsAt(at, timeZone);
      return periods;
    },
  };
};

export type PeriodClock = ReturnType<typeof createPeriodClock>;
