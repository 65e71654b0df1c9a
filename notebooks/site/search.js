// The search, without a server: a page that is opened as a file may load scripts, but neither a worker nor JSON.
const query = document.getElementById("query"), found = document.getElementById("found"), pages = searchPages.docs;

const index = lunr(function () {
  this.ref("place");
  this.field("title", {boost: 10});
  this.field("text");
  pages.forEach((page, place) => this.add({place, title: page.title, text: page.text}));
});

function result(page) {
  const link = document.createElement("a");
  link.href = `${base}/${page.location || "index.html"}`;
  link.textContent = page.title;
  const heading = document.createElement("h3"), text = document.createElement("p"), article = document.createElement("article");
  heading.append(link);
  text.textContent = page.text.slice(0, 200);
  article.append(heading, text);
  return article;
}

function show() {
  const words = query.value.replace(/[~^:+*-]/g, " ").trim();  // signs that lunr would take for operators
  const results = words ? index.search(words) : [];
  found.replaceChildren(...results.slice(0, 40).map(({ref}) => result(pages[ref])));
  if (!results.length) found.textContent = words ? "Nothing found." : "";
}

query.value = new URLSearchParams(location.search).get("q") ?? "";
query.addEventListener("input", show);
show();
