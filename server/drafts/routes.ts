import * as z from 'zod';
import { promotionIdSchema, reviewIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import { PASSWORD_LIMIT } from '../accounts/password.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { Work } from '../commands/work.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import {
  differenceSchema,
  differenceWishSchema,
  promotionSummarySchema,
  reviewDetailSchema,
  reviewSummarySchema,
} from './answers.ts';
import { preparePromotion } from './prepare.ts';
import { approvePromotion, cancelPromotion } from './promote.ts';
import { showPromotion } from './show.ts';
import { listReviews, readDifference, reviewNow, showReview } from './reviews.ts';

/** Routes of reviews and promotions: a person sees those of runs that they started. */
export function routes(app: App, work: Work): void {
  reviewRoutes(app, work);
  promotionRoutes(app, work);
}

function reviewRoutes(app: App, work: Work): void {
  const params = z.strictObject({ review: reviewIdSchema });
  app.post(
    '/api/page/runs/:run/review',
    {
      schema: {
        params: z.strictObject({ run: runIdSchema }),
        response: { 200: z.strictObject({ review: reviewIdSchema }) },
      },
    },
    async (request) => ({ review: await reviewNow(work, personOfRequest(request).person, request.params.run) }),
  );
  app.get(
    '/api/page/reviews',
    { schema: { response: { 200: z.strictObject({ reviews: z.array(reviewSummarySchema) }) } } },
    async (request) => ({ reviews: await listReviews(work.store.read, personOfRequest(request).person) }),
  );
  app.get(
    '/api/page/reviews/:review',
    {
      schema: {
        params,
        querystring: z.strictObject({ offset: z.coerce.number().int().min(0).default(0) }),
        response: { 200: reviewDetailSchema },
      },
    },
    (request) => showReview(work, personOfRequest(request).person, request.params.review, request.query.offset),
  );
  app.post(
    '/api/page/reviews/:review/difference',
    { schema: { params, body: differenceWishSchema, response: { 200: differenceSchema } } },
    (request) => readDifference(work, personOfRequest(request).person, request.params.review, request.body),
  );
  app.post(
    '/api/page/reviews/:review/promotion',
    { schema: { params, response: { 200: promotionSummarySchema } } },
    (request) => preparePromotion(work, personOfRequest(request).person, request.params.review),
  );
}

function promotionRoutes(app: App, work: Work): void {
  const params = z.strictObject({ promotion: promotionIdSchema });
  app.get(
    '/api/page/promotions/:promotion',
    { schema: { params, response: { 200: promotionSummarySchema } } },
    (request) => showPromotion(work.store.read, personOfRequest(request).person, request.params.promotion),
  );
  app.post(
    '/api/page/promotions/:promotion/approve',
    {
      schema: {
        params,
        body: z.strictObject({ password: z.string().min(1).max(PASSWORD_LIMIT) }),
        response: { 200: promotionSummarySchema },
      },
    },
    (request) =>
      approvePromotion(work, personOfRequest(request).person, request.params.promotion, request.body.password),
  );
  app.post(
    '/api/page/promotions/:promotion/cancel',
    { schema: { params, response: { 200: doneSchema } } },
    async (request) => {
      await cancelPromotion(work, personOfRequest(request).person, request.params.promotion);
      return DONE;
    },
  );
}
