/** `2026-03-01 14:05:09` in the local time zone; text that is no time comes back as it is. */
export const formatTime = (time: string): string => {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

/** The same for a narrow column: `14:05:09` of today, else `03-01 14:05`. */
export const shortTime = (localTime: string, now: Date): string => {
  const [day = '', time = ''] = localTime.split(' ');
  return day === formatTime(now.toISOString()).slice(0, 10) ? time : `${day.slice(5)} ${time.slice(0, 5)}`;
};

/** `84ms`, `1.25s`, `3m 20s`, `2h 5m`. */
export const formatDuration = (milliseconds: number): string => {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}ms`;
  // Rounding first, so that 59999 ms is a minute and not `60s`.
  const seconds = milliseconds / 1000;
  if (seconds < 59.995) return `${Number(seconds.toFixed(2))}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
};

/** `0.0042 USD`; money has at most six decimals, the store's unit. */
export const formatCost = (amount: number, currency: string | null | undefined): string => {
  const text = amount.toFixed(6).replace(/\.?0+$/, '');
  return currency === null || currency === undefined || currency === '' ? text : `${text} ${currency}`;
};

/** The parts that say something, as one text. */
export const joined = (parts: readonly string[], separator = ' · '): string =>
  parts.filter((part) => part !== '').join(separator);

const utcTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

const isScalar = (value: unknown): boolean => value === null || typeof value !== 'object';

const formatNumber = (name: string, value: number): string => {
  if (name.endsWith('Ms')) return formatDuration(value);
  return name.endsWith('Rate') ? `${Number((value * 100).toFixed(2))}%` : String(value);
};

/** A value as a table cell shows it: times local, durations with a unit, rates in percent, nothing as `-`. */
export const formatValue = (name: string, value: unknown): string => {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'string') return utcTime.test(value) ? formatTime(value) : value;
  if (typeof value === 'number') return formatNumber(name, value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && value.every(isScalar)) return value.length === 0 ? '-' : value.join(', ');
  return JSON.stringify(value);
};

const memberOf = (value: unknown, name: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => memberOf(item, name));
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
};

/** Member of a row by a path such as `usage.totalTokens`, in a list of each of its items; undefined where the way ends early. */
export const memberAt = (row: unknown, path: string): unknown => path.split('.').reduce<unknown>(memberOf, row);
