import type { QuotaUse } from '../../engine/control/index.ts';

export const noUse: QuotaUse = { tokens: 0, costMicros: 0 };

export const addedUse = (a: QuotaUse, b: QuotaUse): QuotaUse => ({
  tokens: a.tokens + b.tokens,
  costMicros: a.costMicros + b.costMicros,
});
