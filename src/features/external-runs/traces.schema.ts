import Type from 'typebox';

/** opentelemetry-proto 1.x, collector/trace/v1, in its JSON encoding. */
export const ExportTraceServiceResponse = Type.Object({
  partialSuccess: Type.Optional(
    Type.Object({
      rejectedSpans: Type.String({ description: 'Number of rejected spans, as text' }),
      errorMessage: Type.String(),
    }),
  ),
});
