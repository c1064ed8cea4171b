let lastMs = 0;
let lastText = '';

/** RFC 3339 in UTC with milliseconds. The same millisecond is formatted once. */
export const isoTime = (epochMs: number): string => {
  if (epochMs !== lastMs) {
    lastText = new Date(epochMs).toISOString();
    lastMs = epochMs;
  }
  return lastText;
};

export const isoTimeOrNull = (epochMs: number | null): string | null => (epochMs === null ? null : isoTime(epochMs));
