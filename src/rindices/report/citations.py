"""What the report cites."""

SURREAL_GAN = (
    "Yang Z, Wen J, Davatzikos C. Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering "
    "heterogeneous disease-related imaging patterns. International Conference on Learning Representations (ICLR), 2022."
)
REFERENCES = {
    "Yang et al., 2022": SURREAL_GAN,
    "Johnson et al., 2007": (
        "Johnson WE, Li C, Rabinovic A. Adjusting batch effects in microarray expression data using empirical Bayes "
        "methods. Biostatistics 8:118–127, 2007."
    ),
    "Fortin et al., 2018": (
        "Fortin JP, Cullen N, Sheline YI, et al. Harmonization of cortical thickness measurements across scanners and "
        "sites. NeuroImage 167:104–120, 2018."
    ),
    "Pomponio et al., 2020": (
        "Pomponio R, Erus G, Habes M, et al. Harmonization of large MRI datasets for the analysis of brain imaging "
        "patterns throughout the lifespan. NeuroImage 208:116450, 2020."
    ),
    "Freedman & Lane, 1983": (
        "Freedman D, Lane D. A nonstochastic interpretation of reported significance levels. Journal of Business & "
        "Economic Statistics 1:292–298, 1983."
    ),
    "Benjamini & Hochberg, 1995": (
        "Benjamini Y, Hochberg Y. Controlling the false discovery rate: a practical and powerful approach to multiple "
        "testing. Journal of the Royal Statistical Society B 57:289–300, 1995."
    ),
}
