// What the pages do beyond standing there; each part is a module of its own.
import { watchCharts } from "./charts.js";
import { offerCopies } from "./copy.js";
import { watchFolds } from "./fragments.js";
import { watchLedger } from "./ledger.js";

// Material's search dialogue has no name of its own.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");

offerCopies(document);
watchCharts();
watchFolds();
watchLedger();
