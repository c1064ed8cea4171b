import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import type { WebhookDeliveryRow } from '../../db/tables/arriving-work.ts';

type DeliveryOutcome = 'delivered' | 'retry' | 'failed' | 'dropped';

/** Counts attempts at deliveries, and traces them where traces are exported. */
export const createWebhookTelemetry = (telemetry: Telemetry) => {
  const deliveries = telemetry.metrics.counter('acp.webhook.deliveries', 'Attempts at deliveries.', '{attempt}', [
    'acp.webhook.event',
    'acp.webhook.outcome',
  ]);
  return {
    /** The attempt after those of the row; what it gives back is called with its end. */
    began(
      row: Pick<WebhookDeliveryRow, 'event_type' | 'attempt' | 'tenant_id'>,
      url: string,
      parent: TraceParent | null,
    ) {
      const span = telemetry.begin('acp.webhook.delivery', 'Client', parent, {
        'acp.tenant.id': row.tenant_id,
        'acp.webhook.event': row.event_type,
        'acp.webhook.attempt': row.attempt + 1,
        'http.request.method': 'POST',
        'server.address': URL.canParse(url) ? new URL(url).hostname : '',
      });
      return (outcome: DeliveryOutcome, status: number | null, errorType: string | null): void => {
        deliveries.add(1, [row.event_type, outcome]);
        if (status !== null) span?.set({ 'http.response.status_code': status });
        telemetry.finish(span, errorType);
      };
    },
  };
};

export type WebhookTelemetry = ReturnType<typeof createWebhookTelemetry>;
